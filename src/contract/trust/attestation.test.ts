import { generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, test } from "vitest";
import { d, exampleSigner } from "../../../test/support/examples.ts";
import { refusalOf } from "../../../test/support/refusal-of.ts";
import { openRecord, seal } from "../codec/record.ts";
import { Attestation, attestationText, checkAttestation, signersOf } from "./attestation.ts";
import { newKeyPem, signerFromPem } from "./signer.ts";

describe("attestations", () => {
  const sealed = exampleSigner.attest([d("b"), d("a"), d("b")]);

  test("subjects are sorted and unique, and the signature holds after a round trip", () => {
    const { subjects } = sealed.record;
    expect(subjects).toEqual([d("a"), d("b")].sort());
    checkAttestation(openRecord(Attestation, sealed.bytes));
  });

  test("signed aside, an attestation has the same signature", async () => {
    const { signer, subjects, signature } = sealed.record;
    expect(await exampleSigner.signAside(attestationText(signer, subjects))).toBe(signature);
  });

  test("the key is RFC 8032's first test key, and its name its public half", () => {
    // RFC 8032, section 7.1, test 1: secret 9d61…7f60, public d75a…511a.
    expect(Buffer.from(exampleSigner.publicKey.slice(8), "base64url").toString("hex")).toBe(
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
    );
  });

  test("another subject, another signer or another signature is refused", () => {
    const other = signerFromPem(newKeyPem());
    const forged = [
      { ...sealed.record, subjects: [d("a")] },
      { ...sealed.record, signer: other.publicKey },
      { ...sealed.record, signature: other.attest([d("a"), d("b")]).record.signature },
    ];
    for (const each of forged) expect(refusalOf(() => checkAttestation(each)).code).toBe("bad-signature");
  });

  test("bytes that are no point of the curve are refused, not a crash", () => {
    const signer = `ed25519:${Buffer.alloc(32, 0xff).toString("base64url")}` as const;
    expect(refusalOf(() => checkAttestation({ ...sealed.record, signer })).code).toBe("bad-signature");
  });

  test("a key or signature has one spelling: another would count one signer twice", () => {
    // The last base64url character of 32 bytes has two unused bits, that of 64 bytes has four.
    const respell = (text: string) => text.slice(0, -1) + nextCharacter(text.at(-1)!);
    const { signer, signature } = sealed.record;
    const twins = [
      { ...sealed.record, signer: respell(signer) as typeof signer },
      { ...sealed.record, signature: respell(signature) },
    ];
    expect(twins.map((twin) => refusalOf(() => seal(Attestation, twin)).fields.field)).toEqual([
      "$.signer",
      "$.signature",
    ]);
  });

  test("unsorted subjects are refused on reading", () => {
    const subjects = [...sealed.record.subjects].reverse();
    expect(refusalOf(() => seal(Attestation, { ...sealed.record, subjects })).fields.field).toBe("subjects");
  });

  test("ten signatures by one signer are one signer", () => {
    const other = signerFromPem(newKeyPem());
    const many = Array.from({ length: 10 }, (_, i) => exampleSigner.attest([d("a"), d(`x${i}`)]).record);
    const counts = signersOf([...many, other.attest([d("a")]).record]);
    expect(counts.get(d("a"))).toEqual(new Set([exampleSigner.publicKey, other.publicKey]));
    expect(counts.get(d("x3"))?.size).toBe(1);
  });

  test("a signature over the bare bytes of another protocol does not pass for an attestation", () => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const signer = signerFromPem(privateKey.export({ type: "pkcs8", format: "pem" }) as string);
    const signature = sign(null, Buffer.from(d("a")), privateKey).toString("base64url");
    const record = { ...signer.attest([d("a")]).record, signature };
    expect(refusalOf(() => checkAttestation(record)).code).toBe("bad-signature");
  });

  test("a key that is not Ed25519, or no key at all, is refused with the remedy", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
    for (const bad of [pem, "no key"]) {
      const refusal = refusalOf(() => signerFromPem(bad));
      expect([refusal.code, refusal.message.includes("rollbook keys new")]).toEqual(["bad-signature", true]);
    }
  });
});

function nextCharacter(character: string): string {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return alphabet[alphabet.indexOf(character) ^ 1]!;
}
