// Preloaded into the processes of a platform (`--import`): a controller kills itself as soon as etcd has acknowledged
// the nth write of a kind, before its code sees the response. DIES_BY is the path of a file with the rule, in force
// while it exists.
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { EtcdClient } from "@holdfast/controller/kernel/store/etcd-client.ts";

type KeyValues = EtcdClient["raw"]["kv"];
type Request = Parameters<KeyValues["txn"]>[0];
type Answer = Awaited<ReturnType<KeyValues["txn"]>>;

/** Content of the file. */
export interface DeathRule {
  /** Prefixes of keys; a transaction that writes one of them counts. */
  readonly prefixes: readonly string[];
  /** Number of the write to die after, from the start of a process on. */
  readonly nth: number;
  /** Limit of deaths; absent: unlimited. */
  readonly most?: number;
}

/** A line in the file's sibling with the suffix `.deaths`: the last writes. */
export interface Death {
  readonly writes: readonly { readonly key: string; readonly value: string | null }[];
}

const controllerMain = "/controller/src/main.ts";
/** A process that ran for less is restarted with growing delays. */
const healthyMs = 5_200;

const file = process.env["DIES_BY"] ?? "";
const deathsFile = `${file}.deaths`;
if (file !== "" && process.argv[1]?.endsWith(controllerMain)) watchWrites(process.argv[1]);

function watchWrites(main: string): void {
  const { KVClient } = createRequire(main)("etcd3") as { KVClient: { prototype: KeyValues } };
  const txn = KVClient.prototype.txn;
  let count = 0;
  KVClient.prototype.txn = async function counted(this: KeyValues, request, options) {
    const answer = await txn.call(this, request, options);
    const rule = currentRule();
    if (rule === undefined) return answer;
    const writes = writesOf(request, answer).filter(({ key }) => rule.prefixes.some((each) => key.startsWith(each)));
    if (writes.length === 0) return answer;
    count += 1;
    if (count % rule.nth === 0 && deathsSoFar() < (rule.most ?? Number.POSITIVE_INFINITY)) die({ writes });
    return answer;
  };
}

function currentRule(): DeathRule | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

function deathsSoFar(): number {
  try {
    return readFileSync(deathsFile, "utf8").split("\n").length - 1;
  } catch {
    return 0;
  }
}

/** Writes of a transaction, or of each in a batch; none of one whose conditions failed. */
function writesOf({ success = [] }: Request, { succeeded, responses }: Answer): Death["writes"] {
  if (!succeeded) return [];
  return success.flatMap((each, index) => {
    const { request_put: put, request_delete_range: gone, request_txn: inner } = each;
    if (put !== undefined) return [{ key: String(put.key), value: String(put.value) }];
    if (gone !== undefined) return [{ key: String(gone.key), value: null }];
    const answer = responses[index]?.response_txn;
    return inner === undefined || answer === undefined ? [] : writesOf(inner, answer);
  });
}

function die(death: Death): void {
  appendFileSync(deathsFile, `${JSON.stringify(death)}\n`);
  // The process is blocked meanwhile.
  const leftMs = healthyMs - process.uptime() * 1_000;
  if (leftMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leftMs);
  process.kill(process.pid, "SIGKILL");
}
