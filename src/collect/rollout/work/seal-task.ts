/** Seals a row as the task record that its rollouts name. This is the only place that gives a launched task its id and
 *  digest. In: a row, its environment. Out: the record, and a warning for an unusual row. Pure. */
import { digestJson, given, parseId } from "../../../base/index.ts";
import { type EnvironmentKey, type Sealed, seal, Task } from "../../../contract/index.ts";
import { type RowForm, readRow } from "./rows.ts";

interface TaskPlace {
  /** `ref@version` (default: local@1, as in `launch`). */
  readonly environment?: string;
  readonly dataSource?: "real" | "synthetic";
  readonly form?: RowForm;
  /** Location of the row, for messages. */
  readonly where?: string;
}

/** The digest equals the digest that `launch` gives to the same row in the same environment. */
export function sealTask(row: unknown, place: TaskPlace = {}): Sealed<Task> & { readonly warning?: string } {
  const { environment = "local@1", dataSource = "real", form = "auto", where = "row" } = place;
  const { payload, prompt, label, warning } = readRow(row, { form, where });
  const content = { payload, prompt: prompt ?? null, label: label ?? null };
  const task = seal(Task, {
    id: parseId(`t-${digestJson("rollbook.task-id.v1", content).slice(7, 23)}`),
    environment: environment as EnvironmentKey,
    payload,
    ...given({ prompt, label }),
    dataSource,
  });
  return warning === undefined ? task : { ...task, warning };
}
