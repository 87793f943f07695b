// Preloaded into the processes of a platform (`--import`): a controller dies by its own hand as soon as etcd has answered the nth
// write of a kind, and before anybody in it hears of the answer. DIES_BY names the file that says which, while it is there.
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { EtcdClient } from "@holdfast/controller/kernel/store/etcd-client.ts";

type KeyValues = EtcdClient["raw"]["kv"];
type Request = Parameters<KeyValues["txn"]>[0];
type Answer = Awaited<ReturnType<KeyValues["txn"]>>;

/** What the file says. */
export interface Sentence {
  /** Of keys; a transaction that writes one of them counts. */
  readonly prefixes: readonly string[];
  /** After which of them, from the start of a process on. */
  readonly nth: number;
  /** So many deaths at most; absent: no end to them. */
  readonly most?: number;
}

/** A line behind the name of the file with `.deaths`: what was written last. */
export interface Death {
  readonly writes: readonly { readonly key: string; readonly value: string | null }[];
}

const controllerMain = "/controller/src/main.ts";
/** One that ran for less is started again later and later. */
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
    const sentence = sentenceNow();
    if (sentence === undefined) return answer;
    const writes = writesOf(request, answer).filter(({ key }) =>
      sentence.prefixes.some((each) => key.startsWith(each)),
    );
    if (writes.length === 0) return answer;
    count += 1;
    if (count % sentence.nth === 0 && deathsSoFar() < (sentence.most ?? Number.POSITIVE_INFINITY)) die({ writes });
    return answer;
  };
}

function sentenceNow(): Sentence | undefined {
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

/** What a transaction, or each of several that travel together, has written; nothing of one whose conditions did not hold. */
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
  // Nothing in it goes on meanwhile.
  const leftMs = healthyMs - process.uptime() * 1_000;
  if (leftMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, leftMs);
  process.kill(process.pid, "SIGKILL");
}
