/** The policy as a classic BPF program, in the form that the kernel loads (seccomp(2), struct sock_filter).
 *  In: architecture. Out: little-endian instructions of 8 bytes. Pure. */
import { RollbookError } from "../../../base/index.ts";
import {
  type Arch,
  DENIED,
  DENIED_IOCTLS,
  EAFNOSUPPORT,
  ENOSYS,
  EPERM,
  LAST_REVIEWED,
  NAMESPACE_FLAGS,
  numberOf,
  SOCKET_FAMILIES,
} from "./policy.ts";

export interface Instruction {
  readonly code: number;
  readonly jt: number;
  readonly jf: number;
  readonly k: number;
}

export const LOAD_WORD = 0x20; // BPF_LD | BPF_W | BPF_ABS
export const JUMP_EQ = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
export const JUMP_GT = 0x25; // BPF_JMP | BPF_JGT | BPF_K
export const JUMP_SET = 0x45; // BPF_JMP | BPF_JSET | BPF_K
export const RETURN = 0x06; // BPF_RET | BPF_K

export const ALLOW = 0x7fff0000;
export const ERRNO = 0x00050000;
export const KILL_PROCESS = 0x80000000;

const AUDIT_ARCH: Readonly<Record<Arch, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** struct seccomp_data: nr, arch, instruction pointer, six 64-bit arguments. */
const OFFSET = { nr: 0, arch: 4, arg0: 16, arg1: 24 } as const;

export function seccompProgram(arch: Arch): Instruction[] {
  const program: Instruction[] = [
    load(OFFSET.arch),
    ...unless(JUMP_EQ, AUDIT_ARCH[arch], ret(KILL_PROCESS)),
    load(OFFSET.nr),
    // Also refuses the x32 calls, whose numbers have bit 30 set.
    ...when(JUMP_GT, LAST_REVIEWED, ret(ERRNO | ENOSYS)),
    ...when(JUMP_EQ, numberOf("clone3", arch)!, ret(ERRNO | ENOSYS)),
  ];
  for (const name of DENIED) {
    const nr = numberOf(name, arch);
    if (nr !== undefined) program.push(...when(JUMP_EQ, nr, ret(ERRNO | EPERM)));
  }
  const anyNamespace = NAMESPACE_FLAGS.reduce((mask, flag) => mask | flag, 0);
  program.push(
    ...call(numberOf("clone", arch)!, [
      load(OFFSET.arg0),
      ...when(JUMP_SET, anyNamespace, ret(ERRNO | EPERM)),
    ]),
    ...call(numberOf("ioctl", arch)!, [
      load(OFFSET.arg1),
      ...DENIED_IOCTLS.flatMap((request) => when(JUMP_EQ, request, ret(ERRNO | EPERM))),
    ]),
  );
  for (const name of ["socket", "socketpair"])
    program.push(
      ...call(numberOf(name, arch)!, [
        load(OFFSET.arg0),
        ...SOCKET_FAMILIES.flatMap((family) => when(JUMP_EQ, family, ret(ALLOW))),
        ret(ERRNO | EAFNOSUPPORT),
      ]),
    );
  return [...program, ret(ALLOW)];
}

export function encode(program: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(program.length * 8);
  program.forEach(({ code, jt, jf, k }, i) => {
    bytes.writeUInt16LE(code, i * 8);
    bytes.writeUInt8(jt, i * 8 + 2);
    bytes.writeUInt8(jf, i * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, i * 8 + 4);
  });
  return bytes;
}

export function hostArch(): Arch {
  if (process.arch === "x64" || process.arch === "arm64") return process.arch;
  throw new RollbookError(
    "sandbox-no-seccomp",
    { arch: process.arch },
    `no system call policy is written for ${process.arch}. Use the quickjs engine here.`,
  );
}

function load(offset: number): Instruction {
  return { code: LOAD_WORD, jt: 0, jf: 0, k: offset };
}

function ret(value: number): Instruction {
  return { code: RETURN, jt: 0, jf: 0, k: value };
}

function when(code: number, k: number, then: Instruction): Instruction[] {
  return [{ code, jt: 0, jf: 1, k }, then];
}

function unless(code: number, k: number, then: Instruction): Instruction[] {
  return [{ code, jt: 1, jf: 0, k }, then];
}

/** The body runs only for this call, with the number loaded. If it ends without a verdict, the call is allowed. */
function call(nr: number, body: readonly Instruction[]): Instruction[] {
  const block = [...body, ret(ALLOW)];
  return [{ code: JUMP_EQ, jt: 0, jf: block.length, k: nr }, ...block];
}
