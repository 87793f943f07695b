import type { Clock } from "@holdfast/common/clock.ts";
import type { History } from "#kernel/history/history.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ChannelObject } from "#notify/channel/channel.ts";
import type { AlertRuleObject, AlertRuleSetObject, AlertSettingsObject } from "./alert-rule.ts";
import type { RuleOutlook } from "./rule-outlook.ts";
import type { RulesOfServices } from "./rules-of-services.ts";

export interface AlertApiDeps {
  readonly begin: () => UnitOfWork;
  readonly rules: Collection<AlertRuleObject>;
  readonly rulesOf: RulesOfServices;
  readonly ruleSets: Collection<AlertRuleSetObject>;
  readonly alertSettings: Collection<AlertSettingsObject>;
  readonly channels: Pick<Collection<ChannelObject>, "get">;
  readonly outlook: RuleOutlook;
  readonly history: Pick<History, "events">;
  readonly access: ServiceAccess;
  readonly cursors: Cursors;
  readonly clock: Clock;
  readonly newId: () => string;
}
