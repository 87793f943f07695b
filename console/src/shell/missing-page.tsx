import { ButtonLink } from "../parts/button.tsx";
import { Empty } from "../parts/notice.tsx";
import { PageHead } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";

/** For an address without a page. */
export function MissingPage() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty icon="search" title="Nothing is at this address">
        <p class="quiet">The page was removed, or the address has a mistake.</p>
        <ButtonLink href={hrefOf("services")}>To the services</ButtonLink>
      </Empty>
    </>
  );
}
