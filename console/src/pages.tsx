import type { ComponentChild } from "preact";
import { type PagePattern, pagePatterns } from "./page-patterns.ts";
import { lazyPage } from "./router/lazy-page.tsx";
import type { PathVariables, Route } from "./router/match.ts";
import { ServicesPage } from "./services/services-page.tsx";

type RenderPage = (variables: PathVariables) => ComponentChild;

// The first page is part of the first load; the code of any other is loaded when it is opened.
// biome-ignore format: a table, aligned so that it reads as one
const lazy = {
  ServicePage: lazyPage(async () => (await import("./services/service-page.tsx")).ServicePage),
  CreatePage: lazyPage(async () => (await import("./services/create-page.tsx")).CreatePage),
  DeletedPage: lazyPage(async () => (await import("./services/deleted-page.tsx")).DeletedPage),
  QueuePage: lazyPage(async () => (await import("./queues/queue-page.tsx")).QueuePage),
  TopicPage: lazyPage(async () => (await import("./topics/topic-page.tsx")).TopicPage),
  GroupPage: lazyPage(async () => (await import("./topics/group-page.tsx")).GroupPage),
  EventsPage: lazyPage(async () => (await import("./events/events-page.tsx")).EventsPage),
  AlertsPage: lazyPage(async () => (await import("./alerts/alerts-page.tsx")).AlertsPage),
  ChannelPage: lazyPage(async () => (await import("./alerts/channel-page.tsx")).ChannelPage),
  RulePage: lazyPage(async () => (await import("./alerts/rule-page.tsx")).RulePage),
  ProjectsPage: lazyPage(async () => (await import("./projects/projects-page.tsx")).ProjectsPage),
  PlanPage: lazyPage(async () => (await import("./projects/plan-page.tsx")).PlanPage),
  ProjectPage: lazyPage(async () => (await import("./projects/project-page.tsx")).ProjectPage),
  StacksPage: lazyPage(async () => (await import("./stacks/stacks-page.tsx")).StacksPage),
  StackPage: lazyPage(async () => (await import("./stacks/stack-page.tsx")).StackPage),
  PipelinesPage: lazyPage(async () => (await import("./pipelines/pipelines-page.tsx")).PipelinesPage),
  PipelinePage: lazyPage(async () => (await import("./pipelines/pipeline-page.tsx")).PipelinePage),
  AppsPage: lazyPage(async () => (await import("./apps/apps-page.tsx")).AppsPage),
  AppPage: lazyPage(async () => (await import("./apps/app-page.tsx")).AppPage),
  FilesPage: lazyPage(async () => (await import("./files/files-page.tsx")).FilesPage),
  FilesServicePage: lazyPage(async () => (await import("./files/files-service-page.tsx")).FilesServicePage),
  InferencePage: lazyPage(async () => (await import("./inference/inference-page.tsx")).InferencePage),
  WebhooksPage: lazyPage(async () => (await import("./webhooks/webhooks-page.tsx")).WebhooksPage),
  WebhookPage: lazyPage(async () => (await import("./webhooks/webhook-page.tsx")).WebhookPage),
  ExportsPage: lazyPage(async () => (await import("./exports/exports-page.tsx")).ExportsPage),
  ExportPage: lazyPage(async () => (await import("./exports/export-page.tsx")).ExportPage),
  MembersPage: lazyPage(async () => (await import("./organization/members-page.tsx")).MembersPage),
  KeysPage: lazyPage(async () => (await import("./organization/keys-page.tsx")).KeysPage),
  TokensPage: lazyPage(async () => (await import("./organization/tokens-page.tsx")).TokensPage),
  OrganizationPage: lazyPage(async () => (await import("./organization/organization-page.tsx")).OrganizationPage),
  AuditPage: lazyPage(async () => (await import("./organization/audit-page.tsx")).AuditPage),
  SessionsPage: lazyPage(async () => (await import("./organization/sessions-page.tsx")).SessionsPage),
  OperatorsPage: lazyPage(async () => (await import("./operators/operators-page.tsx")).OperatorsPage),
  ResourcesPage: lazyPage(async () => (await import("./generic/resources-page.tsx")).ResourcesPage),
  OperationPage: lazyPage(async () => (await import("./generic/operation-page.tsx")).OperationPage),
  DesignPage: lazyPage(async () => (await import("./design/design-page.tsx")).DesignPage),
};

// biome-ignore format: a table, aligned so that it reads as one
const renders: Readonly<Record<PagePattern, RenderPage>> = {
  "/":                           () => <ServicesPage />,
  "/services":                   () => <ServicesPage />,
  "/services/new":               () => <lazy.CreatePage />,
  "/services/deleted":           () => <lazy.DeletedPage />,
  "/services/:id/queues/:queue": ({ id = "", queue = "" }) => <lazy.QueuePage key={`${id} ${queue}`} serviceId={id} name={queue} />,
  "/services/:id/topics/:topic": ({ id = "", topic = "" }) => <lazy.TopicPage key={`${id} ${topic}`} serviceId={id} name={topic} />,
  "/services/:id/groups/:group": ({ id = "", group = "" }) => <lazy.GroupPage key={`${id} ${group}`} serviceId={id} name={group} />,
  "/services/:id/:tab?":         ({ id = "", tab }) => <lazy.ServicePage key={id} id={id} tab={tab} />,
  "/events":                     () => <lazy.EventsPage />,
  "/alerts":                     () => <lazy.AlertsPage />,
  "/alerts/channels/:id":        ({ id = "" }) => <lazy.ChannelPage key={id} id={id} />,
  "/alerts/rules/:owner/:rule":  ({ owner = "", rule = "" }) => <lazy.RulePage key={`${owner} ${rule}`} ownerId={owner} ruleId={rule} />,
  "/projects":                   () => <lazy.ProjectsPage />,
  "/projects/new":               () => <lazy.PlanPage />,
  "/projects/:name":             ({ name = "" }) => <lazy.ProjectPage key={name} name={name} />,
  "/stacks":                     () => <lazy.StacksPage />,
  "/stacks/:id":                 ({ id = "" }) => <lazy.StackPage key={id} id={id} />,
  "/pipelines":                  () => <lazy.PipelinesPage />,
  "/pipelines/:id":              ({ id = "" }) => <lazy.PipelinePage key={id} id={id} />,
  "/apps":                       () => <lazy.AppsPage />,
  "/apps/:id/:tab?":             ({ id = "", tab }) => <lazy.AppPage key={id} id={id} tab={tab} />,
  "/files":                      () => <lazy.FilesPage />,
  "/files/:id/:tab?":            ({ id = "", tab }) => <lazy.FilesServicePage key={id} id={id} tab={tab} />,
  "/inference":                  () => <lazy.InferencePage />,
  "/webhooks":                   () => <lazy.WebhooksPage />,
  "/webhooks/:id":               ({ id = "" }) => <lazy.WebhookPage key={id} id={id} />,
  "/exports":                    () => <lazy.ExportsPage />,
  "/exports/:id":                ({ id = "" }) => <lazy.ExportPage key={id} id={id} />,
  "/members":                    () => <lazy.MembersPage />,
  "/keys":                       () => <lazy.KeysPage />,
  "/tokens":                     () => <lazy.TokensPage />,
  "/organization":               () => <lazy.OrganizationPage />,
  "/audit":                      () => <lazy.AuditPage />,
  "/sessions":                   () => <lazy.SessionsPage />,
  "/operators/:tab?":            ({ tab }) => <lazy.OperatorsPage tab={tab} />,
  "/resources":                  () => <lazy.ResourcesPage />,
  "/resources/:operation":       ({ operation = "" }) => <lazy.OperationPage key={operation} id={operation} />,
  "/design":                     () => <lazy.DesignPage />,
};

/** Every page of the console. A new one is a line here and in page-patterns.ts. */
export const pages: readonly Route<RenderPage>[] = pagePatterns.map((pattern) => ({ pattern, page: renders[pattern] }));
