import pg from "pg";
import { expect, test } from "vitest";
import { startTestEtcd } from "../controller/etcd.ts";
import { startTestPostgresql } from "../engines/postgresql.ts";

const put = (url: string, key: string, value: string) => etcdCall(url, "put", { key: btoa(key), value: btoa(value) });

async function etcdCall(url: string, method: string, body: object): Promise<{ kvs?: { value: string }[] }> {
  const response = await fetch(`${url}/v3/kv/${method}`, { method: "POST", body: JSON.stringify(body) });
  return (await response.json()) as { kvs?: { value: string }[] };
}

test("a temporary etcd retains its keys over a kill and a restart", async () => {
  const etcd = await startTestEtcd();
  await put(etcd.url, "planet", "mars");
  await etcd.kill();
  await expect(fetch(`${etcd.url}/health`)).rejects.toThrow("fetch failed");
  await etcd.start();
  const response = await etcdCall(etcd.url, "range", { key: btoa("planet") });
  expect(response.kvs?.map((entry) => atob(entry.value))).toEqual(["mars"]);
  await etcd.stop();
});

test("a temporary postgresql retains its rows over a kill and a restart", async () => {
  const postgresql = await startTestPostgresql();
  const first = await connect(postgresql.url);
  await first.query("create table planet as select 'mars' as name");
  await first.query("checkpoint");
  await postgresql.kill();
  await postgresql.start();
  const second = await connect(postgresql.url);
  expect((await second.query("select name from planet")).rows).toEqual([{ name: "mars" }]);
  await second.end();
  await postgresql.stop();
});

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // The test kills the client's server.
  client.on("error", () => undefined);
  await client.connect();
  return client;
}
