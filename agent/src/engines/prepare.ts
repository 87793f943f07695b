import { create } from "@bufbuild/protobuf";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isEngine, loadDriver } from "./drivers.ts";
import { runProgram } from "../os/program.ts";

/**
 * Prepares a data disk ahead of its machine: `node prepare.ts ENGINE VERSION DATA`, as the machine's user. The contents
 * are the same for every service of that version, except for what must differ, such as the system identifier.
 */
const [engine = "", version = "", data = ""] = process.argv.slice(2);
if (!isEngine(engine)) throw new Error(`no such engine: ${engine}`);
const driver = await loadDriver(engine, runProgram);
const spec = create(InstanceSpecSchema, { engine, version });
const paths = { data, config: "/tmp", tls: "/tmp", run: "/tmp", software: driver.software(version), log: "/tmp/log" };
await driver.bootstrap({ spec, paths }, AbortSignal.timeout(100_000));
