import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../parts/button.tsx";
import { SelectField } from "../parts/field.tsx";
import { Icon, type IconName } from "../parts/icon.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, runQuietly } from "../parts/parts.tsx";
import { hrefOf, currentAddress } from "../router/location.ts";
import { account, refusalOf, unreachableSince, chooseOrganization, signOut } from "../session/account.ts";
import { switchTheme, theme } from "./theme.ts";

interface Entry {
  readonly title: string;
  readonly icon: IconName;
  readonly path: readonly string[];
  /** The scope without which the entry is absent. */
  readonly scope?: string;
}

const groups: readonly { readonly title: string; readonly entries: readonly Entry[] }[] = [
  {
    title: "Databases",
    entries: [
      { title: "Services", icon: "database", path: ["services"] },
      { title: "Projects", icon: "layers", path: ["projects"] },
      { title: "Stacks", icon: "stack", path: ["stacks"] },
      { title: "Pipelines", icon: "flow", path: ["pipelines"] },
      { title: "Alerts", icon: "alarm", path: ["alerts"] },
      { title: "Activity", icon: "clock", path: ["events"] },
    ],
  },
  {
    title: "Platform",
    entries: [
      { title: "Apps and sign-in", icon: "door", path: ["apps"] },
      { title: "Files", icon: "folder", path: ["files"] },
      { title: "Inference", icon: "spark", path: ["inference"] },
      { title: "Webhooks", icon: "bolt", path: ["webhooks"] },
      { title: "Exports", icon: "send", path: ["exports"] },
      { title: "All resources", icon: "box", path: ["resources"] },
    ],
  },
  {
    title: "Organization",
    entries: [
      { title: "Members", icon: "people", path: ["members"] },
      { title: "API keys", icon: "key", path: ["keys"] },
      { title: "Tokens", icon: "ticket", path: ["tokens"] },
      { title: "Quotas", icon: "building", path: ["organization"] },
      { title: "Audit log", icon: "shield", path: ["audit"] },
      { title: "Sessions", icon: "list", path: ["sessions"] },
      { title: "Installation", icon: "server", path: ["operators"], scope: "platform:read" },
    ],
  },
];

/** True if the entry's page is open. The first page is the list of services. */
function isAt({ path: [first] }: Entry, path: string): boolean {
  return path === "/" ? first === "services" : path.split("/")[1] === first;
}

function isVisible({ scope }: Entry): boolean {
  return scope === undefined || refusalOf(scope) === undefined;
}

/** The frame of every page: navigation, organization, user, and the state of the connection. */
export function Shell({ children }: { readonly children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const { path } = currentAddress.value;
  useEffect(() => setOpen(false), [path]);
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <div class="shell">
        <header class="side" data-open={String(isOpen)}>
          <a class="brand" href={hrefOf("services")}>
            <span class="mark">
              <Icon name="layers" />
            </span>
            Holdfast
          </a>
          <button
            class="button menu-button"
            data-kind="plain"
            type="button"
            aria-expanded={isOpen}
            aria-controls="menu"
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="menu" />
            Menu
          </button>
          <div class="drawer" id="menu">
            <OrganizationChoice />
            <nav aria-label="Pages">
              {groups.map(({ title, entries }) => (
                <div key={title}>
                  <h2>{title}</h2>
                  {entries.filter(isVisible).map((entry) => (
                    <a
                      key={entry.title}
                      href={hrefOf(...entry.path)}
                      aria-current={isAt(entry, path) ? "page" : undefined}
                    >
                      <Icon name={entry.icon} />
                      {entry.title}
                    </a>
                  ))}
                </div>
              ))}
            </nav>
            <Person />
          </div>
        </header>
        <main class="main" id="content" tabIndex={-1}>
          <UnreachableNotice />
          {children}
        </main>
      </div>
    </>
  );
}

function OrganizationChoice() {
  const { session, me } = account.value;
  const { organizations } = session;
  const [only] = organizations;
  if (organizations.length < 2) return <b class="who organization">{only?.name ?? "No organization"}</b>;
  return (
    <SelectField
      label="Organization"
      value={me.organization_id ?? ""}
      options={organizations.map(({ id, name }) => [id, name] as const)}
      onInput={(id) => runQuietly(chooseOrganization(id))}
    />
  );
}

function Person() {
  const { session, me } = account.value;
  const isDark = theme.value === "dark";
  return (
    <div class="user">
      <div class="who">
        <b>{session.user}</b>
        <span class="quiet small"> {me.role ?? ""}</span>
      </div>
      <div class="row">
        <Button
          kind="plain"
          icon={isDark ? "sun" : "moon"}
          label={isDark ? "Light colors" : "Dark colors"}
          onClick={switchTheme}
        />
        <Button kind="plain" icon="leave" onClick={() => runQuietly(signOut("current"))}>
          Sign out
        </Button>
      </div>
    </div>
  );
}

/** A notice while the API does not respond: pages show their last state, and load again when the API responds. */
function UnreachableNotice() {
  const since = unreachableSince.value;
  if (since === undefined) return null;
  return (
    <div class="away">
      <Notice tone="warn">
        <b>The platform does not respond.</b> This page shows the last state that it received (
        <Age time={new Date(since).toISOString()} />
        ), and loads again automatically. Databases run without the control plane.
      </Notice>
    </div>
  );
}
