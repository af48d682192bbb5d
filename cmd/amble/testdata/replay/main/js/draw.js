document.getElementById("target").innerHTML = "<p style='height: 200px; background: #e0a040'>drawn</p>";
