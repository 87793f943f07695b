import type { ConfigFile, Instance } from "../engine-driver.ts";
import { frontFiles } from "../front/front-config.ts";
import { frontOf } from "./front.ts";
import { loggingName, settingsName } from "./layout.ts";
import { memberSettings } from "./settings.ts";

/** The engine's settings, those of its log, and the front's files. */
export function render(instance: Instance): ConfigFile[] {
  return [
    { name: settingsName, content: settingsText(instance), mode: 0o640 },
    { name: loggingName, content: loggingSettings, mode: 0o640 },
    ...frontFiles(frontOf(instance)),
  ];
}

/** Content of the engine's settings file. */
export function settingsText(instance: Instance): string {
  const head = `# Written by the agent of ${instance.spec.nodeId}: changes made here are lost.\n`;
  // JSON is YAML.
  const settings = Object.entries(memberSettings(instance)).map(
    ([name, value]) => `${name}: ${JSON.stringify(value)}\n`,
  );
  return `${head}${settings.join("")}`;
}

/** Refused requests of users are no fault of the engine, so they are not logged one by one. */
export const loggingSettings = `status = error
appender.output.type = Console
appender.output.name = output
appender.output.layout.type = PatternLayout
appender.output.layout.pattern = %d{yyyy-MM-dd HH:mm:ss,SSS} %p [%c{1}] %m%n
rootLogger.level = info
rootLogger.appenderRef.output.ref = output
logger.deprecation.name = org.opensearch.deprecation
logger.deprecation.level = error
logger.security.name = org.opensearch.security
logger.security.level = error
logger.backend.name = org.opensearch.security.auth.BackendRegistry
logger.backend.level = fatal
`;
