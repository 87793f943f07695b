import { parseArgs } from "node:util";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { queuesOf } from "@holdfast/testing/api/service-queues.ts";
import { openEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { median, ms, percentile, print, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";
import { loadCore, startPeer } from "./support/peer-process.ts";

// Queues over HTTP on a complete platform: an enqueue of a hundred messages and its writes to etcd, and control tasks
// of the same service during eight concurrent requests of the maximum size.
const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "200" },
    tasks: { type: "string", default: "1000" },
    "flood-seconds": { type: "string", default: "90" },
  },
});
const [requests, tasks, seconds] = [Number(values.requests), Number(values.tasks), Number(values["flood-seconds"])];
const atOnce = 8;

printHost();
const platform = await startPlatform();
const etcd = openEtcd(platform.directory);
try {
  const service = await createServices(platform).createRunning("orders");
  const queues = queuesOf(platform, service.service.id);
  await queues.create("small");
  await queues.create("flood");
  const revision = async () => Number((await etcd.raw.get("revision").exec()).header.revision);

  const messages = Array.from({ length: 100 }, (_, n) => ({ payload: { n, text: "x".repeat(160) } }));
  const enqueue = async () => {
    const started = performance.now();
    expectStatus(await platform.rest.post(queues.path("/small/messages"), { messages }), 202);
    return performance.now() - started;
  };
  for (let n = 0; n < 20; n += 1) await enqueue();
  const before = await revision();
  const taken: number[] = [];
  for (let n = 0; n < requests; n += 1) taken.push(await enqueue());
  const puts = (await revision()) - before;
  print("enqueue of 100 over HTTP, p50; p99", `${ms(median(taken))}; ${ms(percentile(taken, 0.99))}`, "p50 <= 15 ms");
  print("  etcd revisions an enqueue, with other activity", (puts / requests).toFixed(3), "0");

  const control = async () => {
    const started = performance.now();
    const { status } = await platform.rest.get(`/managed-services/${service.service.id}/databases`);
    return { status, ms: performance.now() - started };
  };
  // Half of them before and half after the load, as a shared machine's own load changes.
  const aloneMs: number[] = [];
  const measureAlone = async () => {
    for (let n = 0; n < tasks / 2; n += 1) aloneMs.push((await control()).ms);
  };
  await measureAlone();
  const { base_url: baseUrl } = platform.admin;
  const target = { baseUrl, ca: platform.ca, authorization: platform.owner };
  const flood = await startPeer("queue-flood", { target, path: queues.path("/flood/messages") }, loadCore);
  const besideFloodMs: number[] = [];
  const refused = new Map<number, number>();
  let isFinished = false;
  const flooding = flood
    .query<{ statuses: Record<string, number>; started: number; taken: number }>({ query: "go", atOnce, seconds })
    .finally(() => {
      isFinished = true;
    });
  while (!isFinished) {
    const { status, ms: took } = await control();
    if (status === 200) besideFloodMs.push(took);
    else refused.set(status, (refused.get(status) ?? 0) + 1);
  }
  const { statuses, started, taken: floods } = await flooding;
  await flood.end();
  await measureAlone();
  const printed = (values: readonly number[]) => `${ms(median(values))}; ${ms(percentile(values, 0.99))}`;
  print(`control task, p50; p99, alone of ${aloneMs.length}`, printed(aloneMs));
  print(`  beside ${atOnce} requests of 26 MB, of ${besideFloodMs.length}`, printed(besideFloodMs));
  print("  ratio", times(percentile(besideFloodMs, 0.99) / percentile(aloneMs, 0.99)), "<= 2x");
  print(
    "  large ones: taken, started, answers; refused control tasks",
    `${floods}, ${started}, ${JSON.stringify(statuses)}; ${JSON.stringify([...refused])}`,
  );

  // Each accepted message exists once, and none partially. A message whose response was late may exist too.
  const client = await openPostgresql(platform, service.connection, { password: service.password });
  const { rows } = await client.query<{ n: number }>(
    "SELECT count(*)::int AS n FROM mdb_queue.messages WHERE queue_name = 'flood'",
  );
  await client.end();
  const there = (rows[0]?.n ?? 0) / 100;
  if (!Number.isInteger(there) || there < floods || there > started)
    throw new Error(`${there} requests are there, ${floods} were taken of ${started}`);
} finally {
  etcd.raw.close();
  await platform.remove();
}
