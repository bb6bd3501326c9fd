export { findCgroups } from "./find.ts";
export { type CgroupSlot, type Cgroups, type CgroupView, type Counters, drain } from "./slot.ts";
