"use strict";

const container = document.getElementById("swagger-ui");

SwaggerUIBundle({
  url: container.dataset.schema,
  domNode: container,
  deepLinking: true,
  displayRequestDuration: true,
  // Swagger UI would otherwise ask a foreign service whether the schema is valid.
  validatorUrl: null,
});
