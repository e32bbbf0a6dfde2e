"use strict";
// Nothing leaves the page: newer versions of plotly have a button, on unless told otherwise, that uploads a chart.
const config = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false,
  showLink: false,
  plotlyServerURL: "",
  modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud", "select2d", "lasso2d", "autoScale2d"],
};
const figures = JSON.parse(document.getElementById("figures").textContent);
figures.forEach((figure, i) => {
  const place = document.getElementById(`picture-${i}`);
  place.style.minHeight = `${figure.layout.height}px`;
  const isSmall = place.closest(".gallery") !== null || innerWidth < 640; // buttons would hide what it shows
  Plotly.newPlot(place, figure.data, figure.layout, isSmall ? {...config, displayModeBar: false} : config);
});
if (history.state !== null) scrollTo(0, history.state.scroll); // renew.js has loaded the page again
