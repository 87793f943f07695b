// Preloaded into the processes of a platform (`--import`): a controller kills itself as soon as etcd has acknowledged
// the nth write of a kind, before its code sees the response. CRASH_RULE_FILE is the path of a file with the rule; the
// rule applies while the file exists.
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { EtcdClient } from "@holdfast/controller/kernel/store/etcd-client.ts";

type KeyValues = EtcdClient["raw"]["kv"];
type Request = Parameters<KeyValues["txn"]>[0];
type Answer = Awaited<ReturnType<KeyValues["txn"]>>;

/** Content of the rule file. */
export interface CrashRule {
  /** Prefixes of keys; a transaction that writes one of them counts. */
  readonly prefixes: readonly string[];
  /** The process crashes after every nth counted write since its start. */
  readonly nth: number;
  /** Maximum number of crashes; absent: unlimited. */
  readonly max?: number;
}

/** A line in the file's sibling with the suffix `.crashes`: the last writes. */
export interface Crash {
  readonly writes: readonly { readonly key: string; readonly value: string | null }[];
}

const controllerMain = "/controller/src/main.ts";
/** A process that ran for less is restarted with growing delays. */
const healthyMs = 5_200;

const file = process.env["CRASH_RULE_FILE"] ?? "";
const crashesFile = `${file}.crashes`;
if (file !== "" && process.argv[1]?.endsWith(controllerMain)) watchWrites(process.argv[1]);

function watchWrites(main: string): void {
  const { KVClient } = createRequire(main)("etcd3") as { KVClient: { prototype: KeyValues } };
  const txn = KVClient.prototype.txn;
  let count = 0;
  KVClient.prototype.txn = async function counted(this: KeyValues, request, options) {
    const response = await txn.call(this, request, options);
    const rule = currentRule();
    if (rule === undefined) return response;
    const writes = writesOf(request, response).filter(({ key }) => rule.prefixes.some((each) => key.startsWith(each)));
    if (writes.length === 0) return response;
    count += 1;
    if (count % rule.nth === 0 && crashesSoFar() < (rule.max ?? Number.POSITIVE_INFINITY)) crash({ writes });
    return response;
  };
}

function currentRule(): CrashRule | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

function crashesSoFar(): number {
  try {
    return readFileSync(crashesFile, "utf8").split("\n").length - 1;
  } catch {
    return 0;
  }
}

/** Writes of a transaction, or of each in a batch; none of one whose conditions failed. */
function writesOf({ success = [] }: Request, { succeeded, responses }: Answer): Crash["writes"] {
  if (!succeeded) return [];
  return success.flatMap((each, index) => {
    const { request_put: put, request_delete_range: deletion, request_txn: inner } = each;
    if (put !== undefined) return [{ key: String(put.key), value: String(put.value) }];
    if (deletion !== undefined) return [{ key: String(deletion.key), value: null }];
    const response = responses[index]?.response_txn;
    return inner === undefined || response === undefined ? [] : writesOf(inner, response);
  });
}

function crash(crashed: Crash): void {
  appendFileSync(crashesFile, `${JSON.stringify(crashed)}\n`);
  // Blocks the process, so that its code runs no further while the crash waits.
  const leftMs = healthyMs - process.uptime() * 1_000;
  // Time: the length of a run after which a supervisor counts a program as healthy; the thread is blocked.
  if (leftMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leftMs);
  process.kill(process.pid, "SIGKILL");
}
