import type { EngineClient } from "@holdfast/cli/clients/engine-client.ts";

export const etcd: EngineClient = {
  programs: ["etcdctl"],
  hasNoUsers: true,
  session({ host, port, ca_certificate: ca }, _login, files) {
    return { args: [`--endpoints=https://${host}:${port}`, `--cacert=${files.write("ca.pem", ca)}`], environment: {} };
  },
};
