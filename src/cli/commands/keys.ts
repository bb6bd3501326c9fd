/** Implements `rollbook keys`: manages the signing key, and the keys whose signatures count. */
import type { Command } from "commander";
import { RollbookError } from "../../base/index.ts";
import {
  createKey,
  keyringOf,
  listTrusted,
  loadSigner,
  parsePublicKey,
  trustKey,
  untrustKey,
} from "../../book/open/index.ts";
import { jsonLine } from "../../view/format.ts";
import { addCommand, addGroup } from "../command.ts";
import type { Io } from "../io.ts";

const EXAMPLE_KEY = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

export function addKeys(program: Command, io: Io): void {
  const keys = addGroup(program, "keys", {
    summary: "manage your signing key and the keys you trust",
    description:
      "Manage your signing key and the keys you trust. They are in $ROLLBOOK_HOME, else in ~/.config/rollbook, outside every book.",
    examples: ["rollbook keys new", "rollbook keys show"],
  });
  addNew(keys, io);
  addShow(keys, io);
  addTrust(keys, io);
  addUntrust(keys, io);
}

function addNew(keys: Command, io: Io): void {
  addCommand(keys, "new", {
    summary: "create an Ed25519 signing key",
    description:
      "Create an Ed25519 signing key in $ROLLBOOK_HOME, else in ~/.config/rollbook, outside every book and readable only by you. An existing key is kept and printed. gateway, launch, worker, run and sim make a key themselves if there is none.",
    examples: ["rollbook keys new"],
    book: false,
  })
    .option("--force", "replace the existing key; its signatures stay trusted")
    .action((flags: { force?: true; json?: true }) => {
      const keyring = keyringOf(io);
      const known = flags.force ? undefined : loadSigner(keyring);
      if (known !== undefined) {
        // A signing key exists, so the request is already fulfilled.
        io.out(flags.json ? keyJson(known.publicKey, keyring.keyPath, false) : `${known.publicKey}\n`);
        io.err(`${keyring.keyPath} already exists and is kept; --force replaces it\n`);
        return;
      }
      const before = new Set(flags.force ? listTrusted(keyring).map(({ key }) => key) : []);
      const { publicKey } = createKey(keyring, { replace: flags.force === true });
      io.out(flags.json ? keyJson(publicKey, keyring.keyPath, true) : `${publicKey}\n`);
      const former = listTrusted(keyring).filter(({ key }) => !before.has(key))[0]?.key;
      if (flags.force && !flags.json && former !== undefined)
        io.err(
          `the former key stays trusted: end that with \`rollbook keys untrust ${former}\` if others may have it\n`,
        );
      if (!flags.json)
        io.err(`the private key is in ${keyring.keyPath}: keep a copy, share it with no other person\n`);
    });
}

function keyJson(publicKey: string, path: string, created: boolean): string {
  return jsonLine({ publicKey, path, created });
}

function addShow(keys: Command, io: Io): void {
  addCommand(keys, "show", {
    summary: "print your public key and the keys you trust",
    examples: ["rollbook keys show"],
    book: false,
  }).action((flags: { json?: true }) => {
    const keyring = keyringOf(io);
    const own = loadSigner(keyring)?.publicKey;
    const trusted = listTrusted(keyring);
    if (flags.json) {
      io.out(jsonLine({ publicKey: own ?? null, path: keyring.keyPath, trusted }));
      return;
    }
    if (own === undefined && trusted.length === 0)
      throw new RollbookError(
        "no-key",
        { path: keyring.keyPath },
        `${keyring.keyPath}: there is no key. Make one with \`rollbook keys new\`.`,
      );
    if (own !== undefined) io.out(`${own} your key\n`);
    for (const { key, name } of trusted) io.out(`${key} ${name}\n`);
  });
}

function addTrust(keys: Command, io: Io): void {
  addCommand(keys, "trust", {
    summary: "trust the signatures of a public key",
    examples: [`rollbook keys trust ${EXAMPLE_KEY} worker-1`],
    book: false,
  })
    .argument("<key>", "a public key, ed25519:…")
    .argument("[name]", "what to call it", "unnamed")
    .action((key: string, name: string, flags: { json?: true }) => {
      const keyring = keyringOf(io);
      const added = trustKey(keyring, { key: parsePublicKey(key), name });
      if (flags.json) io.out(jsonLine({ key, name, added, path: keyring.trustPath }));
      else io.out(`${key} ${added ? `is trusted now, in ${keyring.trustPath}` : "was trusted already"}\n`);
    });
}

function addUntrust(keys: Command, io: Io): void {
  addCommand(keys, "untrust", {
    summary: "stop trusting the signatures of a public key",
    examples: [`rollbook keys untrust ${EXAMPLE_KEY}`],
    book: false,
  })
    .argument("<key>", "a public key, ed25519:…")
    .action((key: string, flags: { json?: true }) => {
      const keyring = keyringOf(io);
      const removed = untrustKey(keyring, parsePublicKey(key));
      if (flags.json) io.out(jsonLine({ key, removed, path: keyring.trustPath }));
      else io.out(`${key} ${removed ? "is no longer trusted" : `is not in ${keyring.trustPath}`}\n`);
    });
}
