/** JavaScript that runs inside QuickJS before the program: the part of Node's API that programs may use.
 *  `host` is the only access to the host. This code closes over it and removes it from the global object. */

/** Evaluated once per task. Numbers and names follow Node: argv, env, exit codes, error codes. */
export const PRELUDE = `(() => {
  const host = globalThis.__host;
  delete globalThis.__host;
  const text = (value) => typeof value === "string" ? value
    : value instanceof Error ? (value.stack ? value.name + ": " + value.message + "\\n" + value.stack : String(value))
    : typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
  const line = (stream) => (...values) => { host.write(stream, values.map(text).join(" ") + "\\n"); };
  globalThis.console = { log: line("stdout"), info: line("stdout"), debug: line("stdout"), warn: line("stderr"), error: line("stderr") };
  const put = (stream) => ({ write(data) { host.write(stream, typeof data === "string" ? data : exact(data)); return true; } });
  // The bytes of a view, not of the whole buffer behind it.
  const exact = (view) => view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength);
  const fail = (code, call, path) => { throw Object.assign(new Error(code + ": " + call + " '" + path + "'"), { code, path }); };
  globalThis.process = {
    argv: host.argv, env: host.env, exitCode: undefined, platform: "quickjs",
    stdout: put("stdout"), stderr: put("stderr"), cwd: () => "/task",
    // The loop is cut short by the host: nothing after exit runs, not even a catch or a finally.
    exit(code) { host.exit(code ?? globalThis.process.exitCode ?? 0); for (;;) {} },
  };
  const timers = new Map();
  let lastTimer = 0;
  const start = (call, ms, args, every) => {
    timers.set(++lastTimer, { at: host.now() + Math.max(1, Number(ms) || 1), call, args, every });
    return lastTimer;
  };
  globalThis.setTimeout = (call, ms, ...args) => start(call, ms, args, undefined);
  globalThis.setInterval = (call, ms, ...args) => start(call, ms, args, Math.max(1, Number(ms) || 1));
  globalThis.clearTimeout = globalThis.clearInterval = (id) => { timers.delete(id); };
  globalThis.queueMicrotask = (call) => { Promise.resolve().then(call); };
  const runTimer = () => {
    let id, next;
    for (const [key, timer] of timers) if (next === undefined || timer.at < next.at) { id = key; next = timer; }
    if (next === undefined) return false;
    host.sleep(next.at - host.now());
    if (next.every === undefined) timers.delete(id); else next.at += next.every;
    next.call(...next.args);
    return true;
  };
  // One character past the longest path: the host calls it too long, without a copy of the rest.
  const path = (name) => name === 0 ? "/dev/stdin" : String(name).slice(0, 4097);
  const encoding = (options) => typeof options === "string" ? options : options?.encoding;
  const fs = {
    readFileSync(name, options) {
      const data = host.read(path(name), encoding(options) !== undefined);
      if (data === undefined) fail("ENOENT", "open", name);
      return typeof data === "string" ? data : new Uint8Array(data);
    },
    writeFileSync(name, data) {
      const fault = host.writeFile(path(name), typeof data === "string" ? data : exact(data));
      if (fault !== undefined) fail(fault, "open", name);
    },
    appendFileSync(name, data) {
      const before = fs.existsSync(name) ? fs.readFileSync(name) : new Uint8Array();
      const more = new Uint8Array(typeof data === "string" ? host.encode(data) : exact(data));
      const whole = new Uint8Array(before.length + more.length);
      whole.set(before); whole.set(more, before.length);
      fs.writeFileSync(name, whole);
    },
    existsSync: (name) => host.read(path(name), true) !== undefined || host.list(path(name)) !== undefined,
    readdirSync(name) { const names = host.list(path(name)); return names === undefined ? fail("ENOENT", "scandir", name) : names; },
    mkdirSync(name, options) {
      const fault = host.makeFolder(path(name), options?.recursive === true);
      if (fault !== undefined) fail(fault, "mkdir", name);
    },
    unlinkSync(name) { if (!host.remove(path(name))) fail("ENOENT", "unlink", name); },
    rmSync(name, options) { if (!host.remove(path(name)) && !options?.force) fail("ENOENT", "rm", name); },
  };
  return { fs, runTimer };
})()`;

const FS_NAMES = [
  ...["readFileSync", "writeFileSync", "appendFileSync", "existsSync"],
  ...["readdirSync", "mkdirSync", "unlinkSync", "rmSync"],
] as const;

/** Source of the module "node:fs". The object is passed under a global name that only this module reads, once. */
export const FS_MODULE = `
const fs = globalThis.__fs;
delete globalThis.__fs;
export default fs;
export const { ${FS_NAMES.join(", ")} } = fs;`;
