import type { ConfigFile, Instance } from "../engine-driver.ts";
import { frontFiles } from "../front/front-config.ts";
import { frontsOf } from "./front.ts";
import { loggingName, settingsName } from "./layout.ts";
import { brokerSettings } from "./settings.ts";

/** The broker's settings, those of its log, and the front's files. */
export function render(instance: Instance): ConfigFile[] {
  const head = `# Written by the agent of ${instance.spec.nodeId}: changes made here are lost.\n`;
  return [
    { name: settingsName, content: `${head}${propertiesOf(brokerSettings(instance))}`, mode: 0o640 },
    { name: loggingName, content: logging, mode: 0o640 },
    ...frontsOf(instance).flatMap(frontFiles),
  ];
}

/** Text of a file of Java's properties. */
export function propertiesOf(settings: readonly (readonly [name: string, value: string])[]): string {
  return settings.map(([name, value]) => `${name}=${escaped(value)}\n`).join("");
}

/** A value of Java's properties. */
function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll(/[\r\n]/g, " ");
}

/** Refused calls of users are no fault of the broker, so they are not logged one by one. */
const logging = `log4j.rootLogger=INFO, output
log4j.logger.kafka.authorizer.logger=WARN
log4j.logger.state.change.logger=WARN
log4j.logger.kafka.request.logger=WARN
log4j.logger.org.apache.kafka.common.network=WARN
log4j.appender.output=org.apache.log4j.ConsoleAppender
log4j.appender.output.layout=org.apache.log4j.PatternLayout
log4j.appender.output.layout.ConversionPattern=%d{yyyy-MM-dd HH:mm:ss,SSS} %p %m%n
`;
