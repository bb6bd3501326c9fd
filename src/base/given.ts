/** Optional fields from values that may be undefined: an absent field and an undefined one are not the same to a record,
 *  nor to an options object under exactOptionalPropertyTypes. Pure. */

/** The fields that have a value. */
export function given<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const found: Partial<T> = {};
  for (const key of Object.keys(fields) as (keyof T)[])
    if (fields[key] !== undefined) found[key] = fields[key];
  return found as never;
}
