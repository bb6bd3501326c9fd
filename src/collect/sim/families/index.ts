export { FAMILIES, familyNamed } from "./families.ts";
export { DIFFICULTIES, type Difficulty, type Draft, type Family, isUnusable } from "./family.ts";
