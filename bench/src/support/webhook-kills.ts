import { setTimeout as sleep } from "node:timers/promises";
import { benchData } from "./bench-delivery.ts";
import { print } from "./figures.ts";
import type { PeerProcess } from "./peer-process.ts";
import { untilTrue, type WebhookBench } from "./webhook-bench.ts";

const organizations = 20;
const atOnce = 32;
const kills = 3;

/** So much is always there to deliver, and no more. */
const ahead = 2_000;
/** Without an arrival for so long, nothing more comes. */
const silentMs = 30_000;

/** Keeps the sender at full load while it is killed and started again; counts what never came. */
export async function measureKills(bench: WebhookBench, seconds: number): Promise<void> {
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1) ids.push(await bench.organization(["/"]));
  const counts = () => bench.sink.ask<{ received: number; distinct: number }>({ ask: "counts" });
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
    await sender.ask({ ask: "go" });
    if (kill === kills) break;
    await sleep((seconds * 1_000) / (kills + 1));
    await sender.end();
  }
  await Promise.all([emitting, looking]);
  let heardAt = performance.now();
  await untilTrue(async () => {
    const { distinct } = await counts();
    if (distinct > arrived) heardAt = performance.now();
    arrived = distinct;
    return distinct === next || performance.now() - heardAt > silentMs;
  });
  const { received, distinct } = await counts();
  await sender?.end();
  await bench.clear();
  print(`${next} events, sender killed ${kills} times: lost`, String(next - distinct), "0");
  print("came twice or more", String(received - distinct));
}
