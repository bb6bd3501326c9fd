/** A task as an environment: look, edit, run the visible tests, submit. In: the visible part, a test runner.
 *  Out: observations as text, and at the end the files to hand in. Every request of an agent gets an answer: a
 *  forbidden action is refused in an observation, never by a crash. Only a failing sandbox throws. Grades nothing: the
 *  reward does. */
import type { Action, SourceFiles, VisibleTask } from "../tasks/index.ts";
import { TESTS_FAILED, TESTS_PASSED } from "./simulated-model.ts";

interface TestRun {
  readonly passed: boolean;
  readonly output: string;
}

export type RunTests = (visible: VisibleTask, files: SourceFiles) => Promise<TestRun>;

export interface TaskEnvironment {
  /** The first line states the outcome. More lines hold content or output. */
  act(action: Action): Promise<string>;
  /** The files written so far, which would be handed in now. */
  readonly files: SourceFiles;
  readonly submitted: boolean;
}

const MAX_FILE_CHARS = 256 * 1024;
const MAX_OUTPUT_CHARS = 8_000;

export function openEnvironment(visible: VisibleTask, runTests: RunTests): TaskEnvironment {
  const written: Record<string, string> = Object.create(null);
  let submitted = false;
  const all = (): SourceFiles => ({ ...visible.files, ...written });

  const write = (path: string, content: string): string => {
    if (!visible.editable.includes(path))
      return refused(`${path} is not yours to change; you may change ${visible.editable.join(", ")}`);
    if (content.length > MAX_FILE_CHARS)
      return refused(`${content.length} characters are more than the ${MAX_FILE_CHARS} a file may have`);
    written[path] = content.toWellFormed();
    return wroteLine(path);
  };

  const act = async (action: Action): Promise<string> => {
    if (submitted) return refused("the files are handed in already");
    switch (action.kind) {
      case "look":
        return listing(visible, all());
      case "read": {
        const files = all();
        const found = Object.hasOwn(files, action.path) ? files[action.path] : undefined;
        return found === undefined
          ? refused(`there is no file ${JSON.stringify(action.path.slice(0, 200))}`)
          : `${readLine(action.path)}\n${found}`;
      }
      case "write":
        return write(action.path, action.content);
      case "test":
        return testText(await runTests(visible, { ...written }));
      case "submit":
        submitted = true;
        return "handed in";
      case "invalid":
        return refused(action.problem);
      default:
        return action satisfies never;
    }
  };
  return {
    act,
    get files() {
      return { ...written };
    },
    get submitted() {
      return submitted;
    },
  };
}

/** First lines of observations, which a simulated model is billed for. */
export function readLine(path: string): string {
  return `content of ${path}`;
}

export function wroteLine(path: string): string {
  return `wrote ${path}`;
}

function testText({ passed, output }: TestRun): string {
  const shown = output.length > MAX_OUTPUT_CHARS ? `…${output.slice(-MAX_OUTPUT_CHARS)}` : output;
  const head = passed ? TESTS_PASSED : TESTS_FAILED;
  return shown.trim() === "" ? head : `${head}\n${shown}`;
}

function listing({ editable }: VisibleTask, files: SourceFiles): string {
  const paths = [...new Set([...Object.keys(files), ...editable])].sort();
  const lines = paths.map((path) => {
    const size = `${files[path]?.length ?? 0} characters`;
    return editable.includes(path) ? `${path} (${size}, yours to change)` : `${path} (${size})`;
  });
  return `${paths.length} files\n${lines.join("\n")}`;
}

function refused(why: string): string {
  return `refused: ${why}`;
}
