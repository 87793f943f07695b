import type { ComponentChild } from "preact";
import { DesignPage } from "./design/design-page.tsx";
import { EventsPage } from "./events/events-page.tsx";
import { OperationPage } from "./generic/operation-page.tsx";
import { ResourcesPage } from "./generic/resources-page.tsx";
import { AuditPage } from "./organization/audit-page.tsx";
import { KeysPage } from "./organization/keys-page.tsx";
import { MembersPage } from "./organization/members-page.tsx";
import { SessionsPage } from "./organization/sessions-page.tsx";
import { type PagePattern, pagePatterns } from "./page-patterns.ts";
import type { PathVariables, Route } from "./router/match.ts";
import { CreatePage } from "./services/create-page.tsx";
import { ServicePage } from "./services/service-page.tsx";
import { ServicesPage } from "./services/services-page.tsx";

type RenderPage = (variables: PathVariables) => ComponentChild;

// biome-ignore format: a table, aligned so that it reads as one
const renders: Readonly<Record<PagePattern, RenderPage>> = {
  "/":                     () => <ServicesPage />,
  "/services":             () => <ServicesPage />,
  "/services/new":         () => <CreatePage />,
  "/services/:id/:tab?":   ({ id = "", tab }) => <ServicePage key={id} id={id} tab={tab} />,
  "/events":               () => <EventsPage />,
  "/members":              () => <MembersPage />,
  "/keys":                 () => <KeysPage />,
  "/audit":                () => <AuditPage />,
  "/sessions":             () => <SessionsPage />,
  "/resources":            () => <ResourcesPage />,
  "/resources/:operation": ({ operation = "" }) => <OperationPage key={operation} id={operation} />,
  "/design":               () => <DesignPage />,
};

/** Every page of the console. A new one is a line here and in page-patterns.ts. */
export const pages: readonly Route<RenderPage>[] = pagePatterns.map((pattern) => ({ pattern, page: renders[pattern] }));
