import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { createMongodbDriver } from "@holdfast/agent/engines/mongodb/driver.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { clientListener, openMongodb, targetOf } from "@holdfast/testing/engines/mongodb-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { BSON, type MongoClient } from "mongodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { knownFailures } from "./mongodb-specifications/known-failures.ts";
import { type Outcome, runUnifiedFile, type UnifiedFile } from "./mongodb-specifications/unified-test.ts";

// The tests of CRUD in mongodb/specifications, through Node's driver, from a checkout that
// HOLDFAST_TEST_MONGODB_SPECIFICATIONS names (npm run faults -- --mongodb-specifications DIR). Events of the driver are
// not compared.

const checkout = process.env["HOLDFAST_TEST_MONGODB_SPECIFICATIONS"];
const skip = checkout === undefined ? "no checkout" : await requireRecipes(import.meta.filename, "mongodb");
const suiteMs = 900_000;

describe.skipIf(skip !== undefined)("mongodb/specifications on MongoDB's API", () => {
  let machine: EngineMachine;
  let client: MongoClient;

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const login = { username: "app_user", role: "admin", verifier: scramVerifier("a password") };
    const settings = { users: [create(EngineUserSchema, login)], listeners: [clientListener(port)] };
    machine = await createEngineMachine(async (deps) => createMongodbDriver(deps), "mongodb", "ferretdb-2", settings);
    await machine.bringUp();
    client = openMongodb(targetOf(machine), { user: "app_user", password: "a password" });
  });
  afterAll(async () => {
    await client?.close();
    await machine?.remove();
  });

  it("fails only known tests", { timeout: suiteMs }, async () => {
    const version = String((await client.db("admin").command({ buildInfo: 1 }))["version"]);
    const directory = join(checkout ?? "", "source/crud/tests/unified");
    const outcomes = new Map<string, Outcome>();
    for (const name of readdirSync(directory).filter((each) => each.endsWith(".json"))) {
      const file = BSON.EJSON.parse(readFileSync(join(directory, name), "utf8"), { relaxed: true }) as UnifiedFile;
      for (const [test, outcome] of await runUnifiedFile(client, file, version))
        outcomes.set(`${name.slice(0, -".json".length)}: ${test}`, outcome);
    }
    const failures = [...outcomes].flatMap(([name, outcome]) =>
      typeof outcome === "object" && "failed" in outcome ? [{ name, difference: outcome.failed }] : [],
    );
    const passed = [...outcomes.values()].filter((outcome) => outcome === "passed").length;
    const skipped = outcomes.size - passed - failures.length;
    console.log(JSON.stringify({ version, passed, failed: failures.length, skipped }));
    expect(passed).toBeGreaterThan(200);
    const known = knownFailures.flatMap(({ tests }) => tests);
    expect(failures.filter(({ name }) => !known.includes(name))).toEqual([]);
    const failed = failures.map(({ name }) => name);
    expect(known.filter((name) => !failed.includes(name))).toEqual([]);
  });
});
