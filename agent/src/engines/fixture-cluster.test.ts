import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { clusterClient } from "@holdfast/testing/engines/fixture-cluster/client.ts";
import { createClusterDriver } from "@holdfast/testing/engines/fixture-cluster/driver.ts";
import { valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, onThisHost } from "@holdfast/testing/engines/engine-machine.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";

conformsToEngineDriver({
  name: "an engine with two components whose members elect their primary",
  skip: undefined,
  machine: (settings) => createEngineMachine(async () => createClusterDriver(), "valkey", "1", settings, onThisHost),
  connect: clusterClient,
  connectPlain: (machine, options) => clusterClient(machine, { ...options, plain: true }),
  users: {
    verifierOf: valkeyVerifier,
    wrongPassword: /^wrong password$|^no such user$/,
    platformUser: /^no such user$/,
    mayNotWrite: /^read only$/,
  },
  refusals: {
    notAllowed: /ECONNRESET|EPIPE|disconnected|closed/,
    withoutTls: /ECONNRESET|EPIPE|closed/,
  },
  live: ["interval", "7"],
  atStart: ["shards", "3"],
});

/** User of the engine's own that stands for all clients without a name. */
const anonymous = create(EngineUserSchema, { username: "", role: "admin", verifier: valkeyVerifier("") });

conformsToEngineDriver({
  name: "the same engine without users and backups",
  skip: undefined,
  machine({ allowedCidrs }) {
    const { users: _users, backup: _backup, ...driver } = createClusterDriver();
    return createEngineMachine(async () => driver, "valkey", "1", { users: [anonymous], allowedCidrs }, onThisHost);
  },
  connect: clusterClient,
  connectPlain: (machine, options) => clusterClient(machine, { ...options, plain: true }),
  users: undefined,
  refusals: {
    notAllowed: /ECONNRESET|EPIPE|disconnected|closed/,
    withoutTls: /ECONNRESET|EPIPE|closed/,
  },
  live: ["interval", "7"],
  atStart: ["shards", "3"],
  hasBackups: false,
});
