import { setTimeout as sleep } from "node:timers/promises";
import { benchData } from "./bench-delivery.ts";
import { print } from "./figures.ts";
import type { PeerProcess } from "./peer-process.ts";
import { untilTrue, type WebhookBench } from "./webhook-bench.ts";

const organizations = 20;
const atOnce = 32;
const kills = 3;

/** Constant number of waiting deliveries. */
const ahead = 2_000;
/** Without an arrival for this time, no more come. */
const silentMs = 30_000;

/** Runs the sender at full load while it is killed and restarted; counts the missing deliveries. */
export async function measureKills(bench: WebhookBench, seconds: number): Promise<void> {
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1) ids.push(await bench.organization(["/"]));
  const counts = () => bench.sink.query<{ received: number; distinct: number }>({ query: "counts" });
  const until = performance.now() + seconds * 1_000;
  let next = 0;
  let arrived = 0;
  const emitting = Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() < until) {
        if (next - arrived >= ahead) {
          await sleep(10);
          continue;
        }
        const n = next++;
        await bench.platform.emit(ids[n % ids.length] ?? "", "service.running", benchData(n));
      }
    }),
  );
  const looking = (async () => {
    for (; performance.now() < until; await sleep(10)) arrived = (await counts()).distinct;
  })();
  let sender: PeerProcess | undefined;
  for (let kill = 0; kill <= kills; kill += 1) {
    sender = await bench.startSender();
    await sender.query({ query: "go" });
    if (kill === kills) break;
    await sleep((seconds * 1_000) / (kills + 1));
    await sender.end();
  }
  await Promise.all([emitting, looking]);
  let receivedAt = performance.now();
  await untilTrue(async () => {
    const { distinct } = await counts();
    if (distinct > arrived) receivedAt = performance.now();
    arrived = distinct;
    return distinct === next || performance.now() - receivedAt > silentMs;
  });
  const { received, distinct } = await counts();
  await sender?.end();
  await bench.clear();
  print(`${next} events, sender killed ${kills} times: lost`, String(next - distinct), "0");
  print("came twice or more", String(received - distinct));
}
