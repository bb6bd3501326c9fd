import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as requirement from "../../../../scripts/setup/sandbox-headers.mjs";
import { describeNeeding } from "../../../../test/support/needs.ts";
import {
  ALLOW,
  ERRNO,
  encode,
  type Instruction,
  JUMP_EQ,
  JUMP_GT,
  JUMP_SET,
  KILL_PROCESS,
  LOAD_WORD,
  RETURN,
  seccompProgram,
} from "./bpf.ts";
import { ociProfile } from "./oci.ts";
import { type Arch, DENIED, EAFNOSUPPORT, ENOSYS, EPERM, numberOf } from "./policy.ts";

const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;

/** The kernel's rules for these five instructions, written for this test from linux/filter.h. */
function evaluate(
  program: readonly Instruction[],
  call: { nr: number; arch: number; args?: readonly number[] },
): number {
  const words = new Map([
    [0, call.nr],
    [4, call.arch],
    ...(call.args ?? []).map((arg, i) => [16 + 8 * i, arg] as const),
  ]);
  let accumulator = 0;
  for (let at = 0; at < program.length; at++) {
    const { code, jt, jf, k } = program[at]!;
    const jump = (taken: boolean) => {
      at += taken ? jt : jf;
    };
    if (code === LOAD_WORD) accumulator = words.get(k) ?? 0;
    else if (code === JUMP_EQ) jump(accumulator >>> 0 === k >>> 0);
    else if (code === JUMP_GT) jump(accumulator >>> 0 > k >>> 0);
    else if (code === JUMP_SET) jump((accumulator & k) !== 0);
    else if (code === RETURN) return k >>> 0;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error("fell off the end");
}

describe.each(["x64", "arm64"] as const)("the system call filter on %s", (arch: Arch) => {
  const program = seccompProgram(arch);
  const answer = (name: string, ...args: number[]) =>
    evaluate(program, { nr: numberOf(name, arch)!, arch: AUDIT[arch], args });

  it("denies every call of the policy and allows ordinary ones", () => {
    for (const name of DENIED)
      if (numberOf(name, arch) !== undefined) expect(answer(name), name).toBe(ERRNO | EPERM);
    const ordinary = arch === "x64" ? [0, 1, 9, 59, 202, 231, 257] : [63, 64, 222, 221, 98, 94, 56];
    for (const nr of ordinary) expect(evaluate(program, { nr, arch: AUDIT[arch] }), String(nr)).toBe(ALLOW);
  });

  it("kills a call of another architecture, and knows neither clone3 nor calls newer than its review", () => {
    expect(evaluate(program, { nr: 0, arch: 0x40000003 })).toBe(KILL_PROCESS);
    expect(answer("clone3")).toBe(ERRNO | ENOSYS);
    expect(evaluate(program, { nr: 463, arch: AUDIT[arch] })).toBe(ERRNO | ENOSYS);
    expect(evaluate(program, { nr: 0x40000000, arch: AUDIT[arch] })).toBe(ERRNO | ENOSYS);
  });

  it("looks into the arguments of clone, socket and ioctl", () => {
    expect(answer("clone", 0x003d0f00)).toBe(ALLOW); // the flags of pthread_create
    expect(answer("clone", 0x10000000 | 17)).toBe(ERRNO | EPERM); // a user namespace
    for (const family of [1, 2, 10]) expect(answer("socket", family)).toBe(ALLOW);
    for (const family of [0, 16, 17, 38, 40]) expect(answer("socket", family)).toBe(ERRNO | EAFNOSUPPORT);
    expect([answer("ioctl", 0, 0x5401), answer("ioctl", 0, 0x5412)]).toEqual([ALLOW, ERRNO | EPERM]);
  });

  it("fits the kernel's limit and encodes to eight bytes an instruction", () => {
    expect(program.length).toBeLessThan(4096);
    expect(encode(program).byteLength).toBe(program.length * 8);
    // BPF_LD|BPF_W|BPF_ABS of offset 4, encoded by hand.
    expect([...encode(program).subarray(0, 8)]).toEqual([0x20, 0, 0, 0, 4, 0, 0, 0]);
  });
});

await describeNeeding(requirement, "the numbers of the policy", () => {
  const headers: Record<Arch, string> = {
    x64: "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    arm64: "/usr/include/asm-generic/unistd.h",
  };
  // The generic header serves arm64 on every machine. The other header exists only on x64 machines.
  for (const arch of ["x64", "arm64"] as const)
    if (existsSync(headers[arch]))
      it(`are those of the kernel's own header for ${arch}`, () => {
        const header = readFileSync(headers[arch], "utf8");
        const known = new Map(
          [...header.matchAll(/#define __NR(?:3264)?_(\w+)\s+(\d+)/g)].map(([, name, nr]) => [
            name!,
            Number(nr),
          ]),
        );
        let compared = 0;
        for (const name of [...DENIED, "clone", "clone3", "ioctl", "socket", "socketpair"]) {
          const nr = numberOf(name, arch);
          if (nr === undefined || !known.has(name)) continue;
          expect(nr, name).toBe(known.get(name));
          compared++;
        }
        expect(compared).toBeGreaterThan(60);
      });
});

describe("the OCI profile", () => {
  it("names every denied call once and every socket family that is not allowed", () => {
    const { syscalls } = ociProfile();
    expect(syscalls[0]?.names).toEqual(DENIED);
    const families = syscalls
      .filter((rule) => rule.names.includes("socket"))
      .flatMap((rule) => rule.args ?? []);
    const denied = (family: number) =>
      families.some(({ op, value }) => (op === "SCMP_CMP_EQ" ? family === value : family > value));
    expect(Array.from({ length: 50 }, (_, family) => family).filter((family) => !denied(family))).toEqual([
      1, 2, 10,
    ]);
  });
});
