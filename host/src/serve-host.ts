import type { Log } from "@holdfast/common/log.ts";
import { reportedListeners } from "@holdfast/common/open-listeners.ts";
import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts } from "@holdfast/compute/local/host-facts.ts";
import { hostMethods, messageBytes } from "@holdfast/compute/remote/host-methods.ts";
import { createHostRpcs } from "@holdfast/compute/remote/host-rpcs.ts";
import { createMtlsListener } from "@holdfast/mtls/mtls-listener.ts";
import type { HostCredentials } from "./host-credentials.ts";

export interface ServeHostDeps {
  readonly credentials: HostCredentials;
  readonly provider: ComputeProvider;
  readonly facts: () => Promise<HostFacts>;
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  readonly log: Log;
}

/** The host's server for controllers. Machines continue when it closes. */
export interface ServedHost {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves the host's compute provider to controllers over mTLS. Controllers dial the host; each call names a machine
 * operation. Resolves when the server listens.
 */
export async function serveHost(deps: ServeHostDeps): Promise<ServedHost> {
  const { credentials, provider, facts, host, port, log } = deps;
  const { installationId } = credentials;
  const identity = {
    get current() {
      return credentials.current;
    },
    subscribe: (onChange: (renewed: HostCredentials["current"]) => void) =>
      credentials.subscribe(() => onChange(credentials.current)),
  };
  const trustBundle = () => credentials.current.trustBundle;
  const listener = createMtlsListener({ host, port, identity, trustBundle, messageBytes, log });
  const rpcs = createHostRpcs({
    installationId,
    provider,
    facts: async () => ({ ...(await facts()), listeners: reportedListeners().toSorted() }),
    log,
    onHello: credentials.applyHello,
  });
  listener.addService(hostMethods, rpcs);
  return { port: await listener.listen(), close: () => listener.close() };
}
