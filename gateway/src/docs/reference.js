// Runs in the browser, on /docs.
globalThis.ui = globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  // Tags only: operations are rendered when their tag is opened, which takes long for all of them at once.
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  filter: true,
  showExtensions: false,
  // Would send the document to a server of theirs.
  validatorUrl: null,
});
