import type { CliCommand } from "../command.ts";

export function addCatalog(catalog: CliCommand): void {
  catalog
    .example("catalog")
    .example("catalog --output yaml")
    .does(async ({ client, output }) => {
      const offer = await client.catalog();
      if (output.format !== "table") return output.show(offer);
      const engines = offer.engines.map((engine) => ({
        ...engine,
        versions: engine.versions.map(({ version, available }) => (available ? version : `${version} (not available)`)),
      }));
      output.list(engines, ["database_type", "title", "versions", "default_version", "port"]);
      for (const { title, features = [] } of offer.engines)
        for (const { name, available, reason } of features)
          output.info(`${title}, ${name}: ${available ? "available" : `not available: ${reason ?? ""}`}.`);
      const { available, reason } = offer.files;
      output.info(`\nFiles services: ${available ? "available" : `not available: ${reason ?? ""}`}.\n`);
      output.list(offer.plans, ["plan_name", "vcpu", "memory_gb", "kind", "monthly_cost"]);
      output.info("");
      output.list(offer.storage_tiers, ["storage_tier", "medium", "use", "monthly_cost_per_gb"]);
      output.info(`\nPrices in ${offer.currency} a month. Zones: ${offer.zones.map(({ zone }) => zone).join(", ")}.`);
    });
}
