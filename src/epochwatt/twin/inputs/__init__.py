"""Read what a simulation is given: data sheets, data sets, parameters, counted networks."""
