import { connectValkey, valkeyClient, valkeyVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { conformsToEngineDriver } from "@holdfast/testing/engines/engine-conformance.ts";
import { createValkeyDriver } from "./driver.ts";

for (const version of ["8.1", "9"]) {
  conformsToEngineDriver({
    name: `valkey ${version}`,
    skip: hasEngine("valkey", version) ? undefined : "its node image is not made",
    machine: (settings) => createEngineMachine(async (deps) => createValkeyDriver(deps), "valkey", version, settings),
    connect: valkeyClient,
    connectPlain: (machine, options) => connectValkey(machine, { ...options, plain: true }),
    users: {
      verifierOf: valkeyVerifier,
      wrongPassword: /WRONGPASS/,
      platformUser: /WRONGPASS/,
      mayNotWrite: /NOPERM/,
    },
    refusals: {
      notAllowed: /ECONNRESET|EPIPE|disconnected|closed/,
      withoutTls: /ECONNRESET|EPIPE|closed/,
    },
    live: ["maxmemory-policy", "allkeys-lru"],
    atStart: ["io-threads", "2"],
  });
}
