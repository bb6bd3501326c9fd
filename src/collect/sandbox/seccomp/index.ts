export { encode, hostArch, seccompProgram } from "./bpf.ts";
export { ociProfile } from "./oci.ts";
