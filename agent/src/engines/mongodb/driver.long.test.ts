import { clientListener, connectPlainMongodb, mongodbClient } from "@holdfast/testing/engines/mongodb-clients.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { createMongodbDriver } from "./driver.ts";

conformsToEngineDriver({
  name: "mongodb ferretdb-2",
  skip: await requireRecipes(import.meta.filename, "mongodb"),
  ownVersion: "18",
  async machine(settings) {
    const [port = 0] = await freePorts(1);
    const all = { ...settings, listeners: [clientListener(port)] };
    return createEngineMachine(async (deps) => createMongodbDriver(deps), "mongodb", "ferretdb-2", all);
  },
  connect: mongodbClient,
  connectPlain: connectPlainMongodb,
  users: {
    verifierOf: scramVerifier,
    wrongPassword: /Authentication failed/,
    platformUser: /Authentication failed/,
    mayNotWrite: /may only read/,
  },
  refusals: {
    notAllowed: /socket disconnected|ECONNRESET|closed/,
    withoutTls: /ECONNRESET|closed/,
  },
  live: ["work_mem", "7MB"],
  atStart: ["max_connections", "60"],
});
