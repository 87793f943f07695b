import { HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(HostService, {
      listHosts: ofPlatform,
      getHost: platformScoped(() => ({ host_id: "local" })),
      addHost: platformScoped(() => ({ host_id: "thief", zone: "local", address: "192.0.2.1:1" })),
      cordonHost: platformScoped(() => ({ host_id: "local" })),
      uncordonHost: platformScoped(() => ({ host_id: "local" })),
      drainHost: platformScoped(() => ({ host_id: "local", stop_single_nodes: true })),
      removeHost: platformScoped(() => ({ host_id: "local" })),
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.Host.engines": "the catalog of engines",
    "holdfast.admin.v1.Host.missing_paths": "100, and how many there are",
    "holdfast.admin.v1.Host.storage_tiers": "settings of the host",
    "holdfast.admin.v1.HostDrain.waits_for": "100",
  },
  kindBounds: {
    host: "operators",
  },
  nameScopes: {
    "host-api.ts": "global: hosts, which only operators see",
  },
} satisfies Contract;
