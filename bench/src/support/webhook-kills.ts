import { setTimeout as sleep } from "node:timers/promises";
import { benchData } from "./bench-delivery.ts";
import { print } from "./figures.ts";
import type { PeerProcess } from "./peer-process.ts";
import { untilTrue, type WebhookBench } from "./webhook-bench.ts";

const organizations = 20;
const atOnce = 32;
const kills = 3;

/** Emits as fast as it goes while the sender is killed and started again; counts what never came. */
export async function measureKills(bench: WebhookBench, seconds: number): Promise<void> {
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1) ids.push(await bench.organization(["/"]));
  const until = performance.now() + seconds * 1_000;
  let next = 0;
  const emitting = Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (performance.now() < until) {
        const n = next++;
        await bench.platform.emit(ids[n % ids.length] ?? "", "service.running", benchData(n));
      }
    }),
  );
  let sender: PeerProcess | undefined;
  for (let kill = 0; kill <= kills; kill += 1) {
    sender = await bench.startSender();
    await sender.ask({ ask: "go" });
    if (kill === kills) break;
    await sleep((seconds * 1_000) / (kills + 1));
    await sender.end();
  }
  await emitting;
  const counts = () => bench.sink.ask<{ received: number; distinct: number }>({ ask: "counts" });
  const deadline = performance.now() + 60_000;
  await untilTrue(async () => (await counts()).distinct === next || performance.now() > deadline);
  const { received, distinct } = await counts();
  await sender?.end();
  await bench.clear();
  print(`${next} events, sender killed ${kills} times: lost`, String(next - distinct), "0");
  print("came twice or more", String(received - distinct));
}
