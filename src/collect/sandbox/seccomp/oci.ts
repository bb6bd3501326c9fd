/** The policy as an OCI seccomp profile, in the form that Docker takes in `seccomp=`. Pure. */
import {
  DENIED,
  DENIED_IOCTLS,
  EAFNOSUPPORT,
  ENOSYS,
  EPERM,
  NAMESPACE_FLAGS,
  SOCKET_FAMILIES,
} from "./policy.ts";

interface OciRule {
  readonly names: readonly string[];
  readonly action: "SCMP_ACT_ERRNO";
  readonly errnoRet: number;
  readonly args?: readonly { index: number; value: number; valueTwo?: number; op: string }[];
}

export function ociProfile(): { defaultAction: string; syscalls: OciRule[] } {
  const families = Math.max(...SOCKET_FAMILIES);
  const below = Array.from({ length: families }, (_, family) => family).filter(
    (family) => !SOCKET_FAMILIES.includes(family),
  );
  const sockets = ["socket", "socketpair"];
  return {
    defaultAction: "SCMP_ACT_ALLOW",
    syscalls: [
      deny([...DENIED], EPERM),
      deny(["clone3"], ENOSYS),
      // Masked equality: (argument & value) == valueTwo, so each flag needs a separate rule.
      ...NAMESPACE_FLAGS.map((flag) =>
        deny(["clone"], EPERM, { index: 0, value: flag, valueTwo: flag, op: "SCMP_CMP_MASKED_EQ" }),
      ),
      ...DENIED_IOCTLS.map((request) =>
        deny(["ioctl"], EPERM, { index: 1, value: request, op: "SCMP_CMP_EQ" }),
      ),
      ...below.map((family) => deny(sockets, EAFNOSUPPORT, { index: 0, value: family, op: "SCMP_CMP_EQ" })),
      deny(sockets, EAFNOSUPPORT, { index: 0, value: families, op: "SCMP_CMP_GT" }),
    ],
  };
}

function deny(
  names: readonly string[],
  errnoRet: number,
  arg?: NonNullable<OciRule["args"]>[number],
): OciRule {
  return { names, action: "SCMP_ACT_ERRNO", errnoRet, ...(arg === undefined ? {} : { args: [arg] }) };
}
