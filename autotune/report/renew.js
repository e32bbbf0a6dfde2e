"use strict";
// The page is written anew while a sweep runs. It loads itself again, with the place that the reader has reached, but
// not while the reader points at a picture. draw.js takes the place up again.
setInterval(() => {
  if (document.querySelector(".picture:hover") !== null) return;
  history.scrollRestoration = "manual";
  history.replaceState({scroll: scrollY}, "");
  location.reload();
}, 5000);
