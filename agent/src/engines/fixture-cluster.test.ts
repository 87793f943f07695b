import { clusterClient } from "@holdfast/testing/engines/fixture-cluster/client.ts";
import { createClusterDriver } from "@holdfast/testing/engines/fixture-cluster/driver.ts";
import { valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, onThisHost } from "@holdfast/testing/engines/engine-machine.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";

conformsToEngineDriver({
  name: "an engine with two components whose members elect their primary",
  skip: undefined,
  machine: (settings) => createEngineMachine(async () => createClusterDriver(), "valkey", "1", settings, onThisHost),
  verifierOf: valkeyVerifier,
  connect: clusterClient,
  connectPlain: (machine, options) => clusterClient(machine, { ...options, plain: true }),
  refusals: {
    wrongPassword: /^wrong password$|^no such user$/,
    platformUser: /^no such user$/,
    notAllowed: /ECONNRESET|EPIPE|disconnected|closed/,
    withoutTls: /ECONNRESET|EPIPE|closed/,
    mayNotWrite: /^read only$/,
  },
  live: ["interval", "7"],
  atStart: ["shards", "3"],
});
