import type { ComponentChild } from "preact";
import { AlertRules } from "../alerts/alert-rules.tsx";
import { MetricCharts } from "../charts/metric-charts.tsx";
import { EventsTable } from "../events/events-table.tsx";
import { LogLines } from "../logs/log-lines.tsx";
import { AppOverview } from "./app-overview.tsx";
import type { AppProps, HostedAppProps } from "./app-props.ts";
import { AppUsersTab } from "./app-users-tab.tsx";
import { AttachmentsTab } from "./attachments-tab.tsx";
import { ClientsTab } from "./clients-tab.tsx";
import { DeploymentsTab } from "./deployments-tab.tsx";
import { DomainsTab } from "./domains-tab.tsx";
import { HostingTab } from "./hosting-tab.tsx";
import { SignInTab } from "./sign-in-tab.tsx";
import { WithSignIn } from "./with-sign-in.tsx";

interface AppTab {
  readonly name: string;
  readonly title: string;
  /** The content of the tab; undefined for an app without this tab. */
  readonly render: (props: AppProps) => ComponentChild | undefined;
}

/** A tab of apps that the platform runs. */
function ofHosted(render: (props: HostedAppProps) => ComponentChild): AppTab["render"] {
  return (props) => {
    const { hosted } = props.app;
    return hosted === null ? undefined : render({ ...props, hosted });
  };
}

/** A tab with content for apps with a sign-in. */
function ofSignIn(render: (props: AppProps) => ComponentChild): AppTab["render"] {
  return (props) => <WithSignIn appId={props.app.id}>{render(props)}</WithSignIn>;
}

const software = "app";

/** The tabs of an app, in order. */
// biome-ignore format: a table, aligned so that it reads as one
export const appTabs: readonly AppTab[] = [
  { name: "overview",    title: "Overview",           render: (props) => <AppOverview {...props} /> },
  { name: "deployments", title: "Deployments",        render: ofHosted((props) => <DeploymentsTab {...props} />) },
  { name: "metrics",     title: "Metrics",            render: ofHosted(({ app: { id } }) => <MetricCharts owner={{ id, software }} />) },
  { name: "logs",        title: "Logs",               render: ofHosted(({ app }) => <LogLines ownerId={app.id} />) },
  { name: "alerts",      title: "Alerts",             render: ofHosted(({ app: { id } }) => <AlertRules owner={{ id, software }} />) },
  { name: "events",      title: "Events",             render: ofHosted(({ app }) => <EventsTable service={app.id} />) },
  { name: "hosting",     title: "Hosting",            render: ofHosted((props) => <HostingTab {...props} />) },
  { name: "attachments", title: "Attachments",        render: (props) => <AttachmentsTab {...props} /> },
  { name: "domains",     title: "Domains",            render: (props) => <DomainsTab {...props} /> },
  { name: "sign-in",     title: "Sign-in",            render: (props) => <SignInTab {...props} /> },
  { name: "clients",     title: "Clients",            render: ofSignIn((props) => <ClientsTab {...props} />) },
  { name: "users",       title: "Users and sign-ins", render: ofSignIn((props) => <AppUsersTab {...props} />) },
];
