import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isEngine, loadDriver } from "./registry.ts";
import { runProgram } from "../os/program.ts";

/**
 * Makes a data disk ready ahead of its machine: `node prepare.ts ENGINE VERSION DATA`, as the machine's user. What is in
 * it then is the same for every service of that version, but for what must differ, such as the system identifier.
 */
const [engine = "", version = "", data = ""] = process.argv.slice(2);
if (!isEngine(engine)) throw new Error(`no such engine: ${engine}`);
const driver = await loadDriver(engine, runProgram);
const spec = create(InstanceSpecSchema, { engine, version });
const paths = { data, config: "/tmp", tls: "/tmp", run: "/tmp", software: driver.software(version) };
await driver.bootstrap({ spec, paths }, AbortSignal.timeout(100_000));
