/** Implements `rollbook artifact`: imports and exports records. */
import type { Command } from "commander";
import { addGroup } from "../../command.ts";
import type { Io } from "../../io.ts";
import { addArtifactVerify } from "../maintain/verify.ts";
import { addAdmit, addRelease } from "./admit.ts";
import { addErase } from "./erase.ts";
import { addArtifactImport } from "./import.ts";
import { addList, addShow } from "./read.ts";

export function addArtifact(program: Command, io: Io): void {
  const artifact = addGroup(program, "artifact", {
    summary: "import, list, show, admit, erase and verify rollouts",
    examples: ["rollbook artifact import rollouts.jsonl", "rollbook artifact ls"],
  });
  addArtifactImport(artifact, io);
  addList(artifact, io);
  addShow(artifact, io);
  addAdmit(artifact, io);
  addRelease(artifact, io);
  addErase(artifact, io);
  addArtifactVerify(artifact, io);
}
