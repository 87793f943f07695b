import type { NewService } from "@holdfast/sdk/requests.ts";
import type { Catalog } from "@holdfast/sdk/responses.ts";

/** The input of the form: the values of its fields. */
export interface NewServiceInput {
  readonly name: string;
  readonly engine: string;
  /** Empty for the default of the engine. */
  readonly version: string;
  /** Empty for the default of the engine, and for an engine without layouts. */
  readonly layout: string;
  /** Empty for the default of the engine, and for an engine whose databases choose theirs. */
  readonly collation: string;
  readonly plan: string;
  readonly storageGb: string;
  readonly tier: string;
  readonly nodes: string;
  readonly zone: string;
  readonly cidrs: string;
  readonly isProtected: boolean;
}

/** A form for the first engine that runs here, on the smallest plan. */
export function defaultsOf({ engines, plans, storage_tiers, zones, limits, default_allowed_cidrs }: Catalog) {
  const engine = engines.find(({ versions }) => versions.some(({ available }) => available));
  return {
    name: "",
    engine: engine?.database_type ?? "",
    version: "",
    layout: "",
    collation: "",
    plan: plans[0]?.plan_name ?? "",
    storageGb: String(Math.max(10, limits.storage_size_gb_min)),
    tier: storage_tiers[0]?.storage_tier ?? "",
    nodes: "1",
    zone: zones[0]?.zone ?? "",
    cidrs: default_allowed_cidrs.join(", "),
    isProtected: false,
  };
}

/** The request of the form. A text that is not a number is sent unchanged, so that the API's error names the field. */
export function newServiceOf(input: NewServiceInput): NewService {
  return {
    name: input.name,
    database_type: input.engine,
    ...(input.version !== "" && { version: input.version }),
    ...(input.layout !== "" && { layout_mode: input.layout }),
    ...(input.collation !== "" && { server_collation: input.collation }),
    plan_name: input.plan,
    storage_size_gb: Number(input.storageGb),
    storage_tier: input.tier,
    zone: input.zone,
    node_count: Number(input.nodes),
    allowed_cidrs: listOf(input.cidrs),
    ...(input.isProtected && { deletion_protection: true }),
  };
}

/** The parts of a text that is separated by commas. */
export function listOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((part) => part !== "");
}

/** The command that creates the same service. */
export function commandOf(input: NewServiceInput): string {
  const { name, engine, version, layout, collation, plan, storageGb, nodes, cidrs } = input;
  const flags = [
    ["--type", engine],
    ...(version === "" ? [] : [["--engine-version", version]]),
    ...(layout === "" ? [] : [["--layout-mode", layout]]),
    ...(collation === "" ? [] : [["--server-collation", collation]]),
    ["--plan", plan],
    ["--storage-gb", storageGb],
    ...(nodes === "1" ? [] : [["--nodes", nodes]]),
    ...listOf(cidrs).map((cidr) => ["--allow", cidr]),
  ];
  const parts = [
    "holdfast services create",
    quoted(name || "NAME"),
    ...flags.map(([flag, value = ""]) => `${flag} ${quoted(value)}`),
  ];
  return parts.join(" ");
}

/** A word of a shell command, in quotes if necessary. */
export function quoted(word: string): string {
  return /^[\w./:@-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
