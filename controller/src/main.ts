import { inBackground } from "@holdfast/common/background.ts";
import { systemClock } from "@holdfast/common/clock.ts";
import { watchProcessFaults } from "@holdfast/common/process-faults.ts";
import { startController } from "./controller.ts";
import { systems } from "./systems.ts";

const controller = await startController(systems, process.env);
watchProcessFaults({ role: "server", logFault: controller.log.error, monotonicMs: systemClock.monotonicMs });

for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => inBackground(controller.log, "stop", stop()));

async function stop(): Promise<void> {
  controller.log.info("stopping", { controller: controller.controllerId });
  // The time of a stop is bounded: another controller has taken over by then.
  setTimeout(() => process.exit(0), 2_500).unref();
  await controller.stop();
  process.exit(0);
}
