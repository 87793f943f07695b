import { testMachineSpec } from "./machine-spec.ts";
import { startTestMachines } from "./process-machines.ts";

/**
 * A controller's process with one action on a machine, which a test kills during the action: `node machine-worker.ts
 * DIRECTORY create|start|destroy ID`. Prints "begin" first.
 */
const [directory = "", verb, id = ""] = process.argv.slice(2);
const { provider } = await startTestMachines({ directory, publicBlock: "203.0.113.0/24" });
const { signal } = new AbortController();
console.log("begin");
if (verb === "destroy") await provider.destroy(id, signal);
else await provider.create(testMachineSpec({ id }), signal);
if (verb === "start") {
  await provider.start(id, { installationId: "test", controllers: [], caFingerprint: "", token: "t" }, signal);
}
await provider.close();
