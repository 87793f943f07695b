import { CatalogService } from "@holdfast/proto/holdfast/v1/catalog_pb.ts";
import { casesOf, type Contract, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(CatalogService, {
      getCatalog: ofCaller,
    }),
  ],
  sdk: [
    sdkCalls(CatalogService, {
      getCatalog: (c) => c.catalog(),
    }),
  ],
  listBounds: {
    "holdfast.v1.Catalog.default_allowed_cidrs": "settings of the platform",
    "holdfast.v1.Catalog.engines": "the catalog of engines",
    "holdfast.v1.Catalog.metrics": "the catalog of metrics",
    "holdfast.v1.Catalog.plans": "settings of the platform",
    "holdfast.v1.Catalog.storage_tiers": "settings of the platform",
    "holdfast.v1.Catalog.zones": "settings of the platform",
    "holdfast.v1.CatalogEngine.extensions": "the catalog of engines",
    "holdfast.v1.CatalogEngine.features": "the catalog of engines",
    "holdfast.v1.CatalogEngine.parameters": "the catalog of engines",
    "holdfast.v1.CatalogEngine.versions": "the catalog of engines",
    "holdfast.v1.CatalogMetric.engines": "the catalog of engines",
    "holdfast.v1.EngineParameter.values": "the catalog of engines",
    "holdfast.v1.EngineParameter.versions": "the catalog of engines",
    "holdfast.v1.EnginePooler.modes": "modes of poolers",
    "holdfast.v1.CatalogEngine.layout_modes": "layouts of T-SQL services",
    "holdfast.v1.CatalogEngine.server_collations": "collations of T-SQL services",
  },
} satisfies Contract;
