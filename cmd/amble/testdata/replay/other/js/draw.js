document.body.insertAdjacentHTML("beforeend", "<p style='height: 150px; background: #40a0e0'>drawn by another</p>");
