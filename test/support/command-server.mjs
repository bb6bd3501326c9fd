/** Runs the commands of shell scripts in one process, from the build, because a process start takes longer than most
 *  commands. Prints its port. In: a connection for each command, with fields that end in NUL: number of fields, process
 *  id of the shell, descriptor of its output, directory, number of variables, variables, words. Out: the exit code.
 *  Reads and writes the streams of that shell. */
import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { createServer } from "node:net";
import { run } from "../../dist/cli/run.js";

const server = createServer(async (socket) => {
  const { pid, stdout, folder, variables, words } = await requestOf(socket);
  process.chdir(folder);
  for (const name of Object.keys(process.env)) if (name.startsWith("ROLLBOOK_")) delete process.env[name];
  Object.assign(process.env, variables);
  const [out, err] = [stdout, 2].map((stream) => writerTo(`/proc/${pid}/fd/${stream}`));
  const code = await run(words, {
    stdin: (async function* () {
      yield* createReadStream(`/proc/${pid}/fd/0`);
    })(),
    ...{ out: out.write, err: err.write, live: false, terminal: false },
    ...{ env: { ...process.env }, home: process.env.HOME, clock: { nowMs: Date.now } },
  });
  await Promise.all([out.end(), err.end()]);
  socket.end(`${code}\n`);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));

async function requestOf(socket) {
  let [text, fields] = ["", []];
  socket.setEncoding("utf8");
  for await (const part of socket.iterator({ destroyOnReturn: false })) {
    text += part;
    fields = text.split("\0");
    if (Number(fields[0]) === fields.length - 2) break;
  }
  const [, pid, stdout, folder, count, ...rest] = fields.slice(0, -1);
  const pairs = rest.splice(0, Number(count)).map((pair) => pair.split(/=(.*)/s, 2));
  return { pid, stdout, folder, variables: Object.fromEntries(pairs), words: rest };
}

/** Writes to `path`. If the reader closes the pipe, the output ends, but the command goes on. */
function writerTo(path) {
  const stream = createWriteStream(path, { flags: "a" });
  const done = once(stream, "close").catch((error) => {
    if (error.code !== "EPIPE") throw error;
  });
  return {
    write: (data) => stream.writable && stream.write(data),
    end: () => {
      stream.end();
      return done;
    },
  };
}
