/** Builds optional fields from values that may be undefined. Records and options objects under
 *  exactOptionalPropertyTypes distinguish an absent field from an undefined field. Pure. */

/** Fields whose value is not undefined. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const found: Partial<T> = {};
  for (const key of Object.keys(fields) as (keyof T)[])
    if (fields[key] !== undefined) found[key] = fields[key];
  return found as never;
}
