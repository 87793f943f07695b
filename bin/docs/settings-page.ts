import type { Setting } from "../../common/src/config.ts";
import { settings as controllerSettings } from "../../controller/src/config.ts";
import { systems } from "../../controller/src/systems.ts";
import { dnsSettings } from "../../dns/src/config.ts";
import { settings as hostSettings } from "../../host/src/config.ts";
import { inferenceSettings } from "../../inference/src/config.ts";
import { issuerSettings } from "../../issuer/src/config.ts";
import { acmeSettings } from "../../local/src/acme/config.ts";
import { ingressSettings } from "../../ingress/src/config.ts";
import { registrySettings } from "../../registry/src/config.ts";
import { storeSettings } from "../../store/src/config.ts";
import { link, type Pages, table } from "./pages.ts";

type Settings = readonly Setting<unknown>[];

interface Group {
  readonly name: string;
  readonly process: string;
  readonly about: string;
  readonly settings: Settings;
}

/** Pages of settings: one for each system of the controller that has settings, and one for each other process. */
export function settingsPages(): Pages {
  const groups = settingsGroups();
  const index = [
    "# Settings",
    "",
    "Read from the environment once, when a process starts.",
    "",
    ...table(
      ["page", "process", "settings"],
      groups.map(({ name, process, settings }) => [
        link(name, `settings/${name}.md`),
        process,
        settings.map(({ variable }) => `\`${variable}\``).join("<br>"),
      ]),
    ),
    "",
  ];
  const pages = groups.map(
    ({ name, about, settings }) => [`settings/${name}.md`, settingsPage(name, about, settings)] as const,
  );
  return new Map([["settings.md", index.join("\n")], ...pages]);
}

function settingsGroups(): Group[] {
  const ofSystems = systems.flatMap(({ name, settings = {} }) => {
    const values: Settings = Object.values(settings);
    return values.length === 0 ? [] : [{ name, settings: values }];
  });
  const declared = new Set(ofSystems.flatMap(({ settings }) => settings.map(({ variable }) => variable)));
  const api = Object.values(controllerSettings as Readonly<Record<string, Setting<unknown>>>).filter(
    ({ variable }) => !declared.has(variable),
  );
  const about = (name: string) => `Settings of controllers, for the system \`${name}\`.`;
  const ofControllers = [...ofSystems, { name: "api", settings: api }].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    ...ofControllers.map((group) => ({ ...group, process: "controller", about: about(group.name) })),
    {
      name: "host-process",
      process: "host",
      about: "Settings of the process on each host.",
      settings: Object.values(hostSettings),
    },
    {
      name: "inference-proxy",
      process: "inference",
      about: "Settings of the inference proxy.",
      settings: Object.values(inferenceSettings),
    },
    {
      name: "ingress",
      process: "ingress",
      about: "Settings of the ingress of hosted apps.",
      settings: Object.values(ingressSettings),
    },
    {
      name: "registry",
      process: "registry",
      about: "Settings of the registry of images.",
      settings: Object.values(registrySettings),
    },
    { name: "issuer", process: "issuer", about: "Settings of an issuer.", settings: Object.values(issuerSettings) },
    {
      name: "store",
      process: "store",
      about: "Settings of the process that serves the objects of a directory to machines.",
      settings: Object.values(storeSettings),
    },
    {
      name: "acme",
      process: "acme",
      about: "Settings of the process that obtains the API's certificate from a public authority.",
      settings: Object.values(acmeSettings),
    },
    { name: "dns", process: "dns", about: "Settings of a DNS server.", settings: Object.values(dnsSettings) },
  ];
}

function settingsPage(name: string, about: string, settings: Settings): string {
  const rows = settings.map(({ variable, description, fallback }) => [
    `\`${variable}\``,
    description,
    fallback === undefined ? "must be set" : fallback === "" ? "" : `\`${fallback}\``,
  ]);
  return [
    `# Settings: ${name}`,
    "",
    `${about} All pages: [settings](../settings.md).`,
    "",
    ...table(["variable", "meaning", "when not set"], rows),
    "",
  ].join("\n");
}
