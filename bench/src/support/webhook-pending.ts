import { setTimeout as sleep } from "node:timers/promises";
import { print } from "./figures.ts";
import { memoryOf } from "./host.ts";
import type { WebhookBench } from "./webhook-bench.ts";

const organizations = 20;
const endpointsEach = 5;
const seconds = 20;

/** Memory of a sender with this many waiting deliveries, beside that of one with a twentieth of them. */
export async function measurePending(bench: WebhookBench, pending: number): Promise<void> {
  const fewer = Math.round(pending / 20);
  const few = await peakWith(bench, fewer);
  const many = await peakWith(bench, pending);
  print(`peak RSS of the sender, ${fewer} pending`, `${few.rssMb.toFixed(0)} MB`);
  print(`peak RSS of the sender, ${pending} pending`, `${many.rssMb.toFixed(0)} MB`);
  print("deliveries a second out of that", `${many.perSecond.toFixed(0)}/s`);
}

async function peakWith(bench: WebhookBench, pending: number): Promise<{ rssMb: number; perSecond: number }> {
  for (let n = 0; n < organizations; n += 1) await bench.organization(Array.from({ length: endpointsEach }, () => "/"));
  const { database } = bench.platform.history;
  const ids = [...bench.platform.webhooks.values()].map(({ object }) => object.metadata.id);
  await database.session(async (client) => {
    await client.query(
      `with made as (
         insert into event (id, occurred_at, organization_id, type, object_kind, object_id, data)
         select gen_random_uuid(), now(), 'o', 'service.running', 'managed-service', 's', jsonb_build_object('n', i)
         from generate_series(1, $1::int / cardinality($2::text[])) i returning id, occurred_at
       )
       insert into webhook_delivery (webhook_id, event_id, occurred_at, due_at)
       select w, made.id, made.occurred_at, now() from made, unnest($2::text[]) w`,
      [pending, ids],
    );
    await client.query("analyze webhook_delivery");
  });
  const sender = await bench.startSender();
  await sender.query({ query: "go" });
  const began = performance.now();
  let rssMb = 0;
  let done = 0;
  do {
    await sleep(200);
    rssMb = Math.max(rssMb, memoryOf(sender.pid).rssMb);
    done = (await bench.sink.query<{ received: number }>({ query: "counts" })).received;
  } while (performance.now() - began < seconds * 1_000 && done < pending);
  const perSecond = done / ((performance.now() - began) / 1_000);
  await sender.end();
  await bench.clear();
  return { rssMb, perSecond };
}
