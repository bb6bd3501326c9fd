export * from "./bpf.ts";
export * from "./oci.ts";
